"""The hooks of plugins, and the records that they return. The built-ins use the same hooks.

A plugin is a module or an object with some of these functions. Each is marked with `hookimpl`, and the
plugin is named in the entry-point group ``rebalance_lab``:

    from coordinator_core.registry.hookspecs import AssignorSpec, hookimpl

    @hookimpl
    def assignors():
        return [AssignorSpec("mine", MyAssignor)]
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeAlias

import pluggy

if TYPE_CHECKING:  # the help of the command imports no numpy
    import msgspec

    from coordinator_core.assigning.assignor import Assignor
    from coordinator_core.assigning.problem import Problem
    from coordinator_core.model import Int32Array
    from coordinator_core.registry.host import Host, Provider

PROJECT = "rebalance_lab"
DEFAULT_PROTOCOL = "classic"

hookspec = pluggy.HookspecMarker(PROJECT)
hookimpl = pluggy.HookimplMarker(PROJECT)


MakeAssignor: TypeAlias = Callable[[str], "Assignor"]
"""Makes a fresh assignor from its name. Combinators that need a second assignor call it."""


@dataclass(frozen=True, slots=True)
class AssignorSpec:
    """A named assignor. ``factory`` makes a fresh object for each consumer; ``doc`` is one line.

    ``options`` maps the keyword arguments of the factory that a strategy may set
    (``optimal+max_moves=5%``) to readers of their text. A reader raises ValueError with the expected text.
    An option without a value is read from "". ``provider`` is the provider that informs the assignor unless
    the strategy names another. The attributes ``options`` and ``provider`` of the factory, such as a class,
    count as well; those given here replace them one by one. ``name`` must be that of the assignor.
    ``protocols`` are the names of the protocols that the assignor works with; empty means all. ``aliases``
    are further names for texts of strategies.

    ``owners`` computes the assignment of an assignor without options from a `Problem` alone: int32[P], a
    position in ``problem.members`` or -1. Claims there are the partitions that each member got last, with
    its generation, or those that it still owns if the assignor is cooperative. Plans of many groups call it
    in place of the assignor. ``by_names``: whether these depend on the names of members and topics, apart
    from their order.
    """

    name: str
    factory: Callable[..., "Assignor"]
    options: Mapping[str, Callable[[str], Any]] = field(default_factory=dict, kw_only=True)
    provider: str = field(default="", kw_only=True)
    protocols: tuple[str, ...] = field(default=(), kw_only=True)
    aliases: Mapping[str, str] = field(default_factory=dict, kw_only=True)
    owners: "Callable[[Problem], Int32Array] | None" = field(default=None, kw_only=True)
    by_names: bool = field(default=False, kw_only=True)
    doc: str = ""

    def __post_init__(self) -> None:
        options, provider = getattr(self.factory, "options", None), getattr(self.factory, "provider", "")
        if isinstance(options, Mapping) and isinstance(self.options, Mapping):
            object.__setattr__(self, "options", {**options, **self.options})
        if not self.provider and isinstance(provider, str):
            object.__setattr__(self, "provider", provider)


DELAY_OF_SETTINGS = -1
"""A delay whose time is that of the setting scheduled.rebalance.max.delay.ms."""


@dataclass(frozen=True, slots=True)
class Strategy:
    """How a group rebalances: an assignor, a protocol, and the changes that modifiers made to them.

    ``name`` is the text as written (``range+static``). ``static``: members have a group.instance.id.
    ``arguments`` are the arguments of the assignor's factory. ``wrappers`` are combinators around the
    assignor, the innermost first. ``delay_ms``: lost partitions wait so long for their owner, None if they
    do not (`assigning.delaying`), `DELAY_OF_SETTINGS` if the settings have the time. ``provider`` informs the
    assignor; "" means no provider. ``settings`` are settings of the protocol, by their dotted names, in place
    of those of the scenario. ``factory`` makes the assignor in place of the one that ``assignor`` names.
    """

    name: str
    assignor: str
    protocol: str = DEFAULT_PROTOCOL
    static: bool = False
    arguments: Mapping[str, Any] = field(default_factory=dict)
    wrappers: tuple[Callable[["Assignor", MakeAssignor], "Assignor"], ...] = ()
    delay_ms: int | None = None
    provider: str = ""
    settings: Mapping[str, Any] = field(default_factory=dict)
    factory: "Callable[..., Assignor] | None" = None

    def with_changes(self, **changes: Any) -> "Strategy":
        """Return a copy with some fields changed."""
        return replace(self, **changes)


@dataclass(frozen=True, slots=True)
class ModifierSpec:
    """A part ``+name`` or ``+name=value`` of a strategy. ``apply(strategy, value)`` returns the changed one.

    ``apply`` raises ValueError with the expected text for a value that it cannot use. A modifier that
    changes nothing is refused, unless it has a value, which may be the default. ``of_protocol``: the
    protocol must support the modifier, and lists it in `ProtocolSpec.modifiers`. ``elsewhere`` is the reason
    why others do not. Other modifiers change the assignor alone.
    """

    name: str
    apply: Callable[[Strategy, str | None], Strategy]
    of_protocol: bool = field(default=False, kw_only=True)
    elsewhere: str = field(default="", kw_only=True)
    doc: str = ""


@dataclass(frozen=True, slots=True)
class ProtocolSpec:
    """A family of rebalance protocols, such as the classic one with JoinGroup and SyncGroup.

    ``states`` maps each state of a group to the states that may follow it. The others are among them:
    in ``at_rest`` every member has an assignment; ``round_begins`` are those in which a new assignment is
    begun; in ``vacant`` the group has no members. A round lasts from a state in ``round_begins`` to the next
    one in ``at_rest``. ``members_join`` are the states of a member that has sent its request to join a round;
    there are none if rounds do not wait for such requests. ``initial_delay``: the first round of a group
    without members waits for ``group.initial.rebalance.delay.ms``, whoever has joined.

    ``coordinator(surroundings)`` returns the coordinator's part (`coordinator.parts.CoordinatorPart`),
    ``member(settings)`` the factory of the member's part (`client.member.MakeMember`). ``settings`` is the
    msgspec Struct of the protocol's own settings, with dotted names as `client.config.ClientConfig` has them;
    ``member`` gets one, or None if the protocol has no settings of its own. ``running_group`` makes the group
    that runs already at time 0 (`families.running_group.RunningGroup`); None if the protocol cannot begin so.
    ``remove_members(group_id, members)`` returns the request with which an administrator removes members
    (`protocol.messages.DescribedMember`); None if there is no such request.

    A family whose members need no coordinator has ``servers`` in place of ``coordinator``: a function that
    makes the lab's `simulation.world.servers.Servers` from a `Site` there, which also report the states of
    the group. Then ``member`` also gets the numbers of the servers' nodes. ``load`` makes the load of a run
    in place of the lab's own (`simulation.process.load.Load`), if several members may work on a partition.

    ``events`` are the family's own kinds of events, subclasses of `protocol.events.FamilyEvent`.
    ``sentences`` maps kinds of events to functions that return the text of an event for the story.

    ``unowned(events)`` returns why partitions have no owner at the end of a run with these events, and what
    to change, by causes of `traces.causes.CAUSES`. ``stops`` maps parts of the stopped time
    (`traces.causes.PARTS`), and the cause standing, to what happens in them.
    Both have only what differs from the classic protocol.

    ``shorter`` maps kinds of changes (`verdicts.changes.Kind`, by name) to settings of the protocol, with the
    duration in milliseconds that is tried in place of a longer one. ``needs(settings, events)`` yields kinds
    of changes, settings and the values with which members of a run with these events are not too late.

    ``meaningless`` maps the kinds of scenario events and the modifiers that have no meaning under the
    protocol to the reason; ``"assignors"`` stands for assignors of single members, ``"owned"`` for groups
    that run already. ``unread`` maps the settings of consumers and coordinators that do nothing under it to
    the setting in their place, "" if there is none.
    ``own_epochs``: each member has an epoch of its own, and is valid while the group has it. A round lasts
    until all members have reached the last assignment.
    ``planned``: `planning.plan` can compute the assignments without messages. ``modifiers`` are those of
    protocols (`ModifierSpec.of_protocol`) that this one supports. ``aliases`` maps further names to texts of
    strategies (``{"eager": "range+classic"}``). ``of_scenarios``: no strategy names the protocol; a scenario
    asks for it. Its ``coordinator`` returns several parts, and ``member`` also gets the name of a member's
    protocol, as ``group.protocol`` has it. ``on_kafka``: brokers of Kafka run it. Verdicts do not choose
    another one in its place.
    """

    name: str
    states: Mapping[str, Collection[str]]
    at_rest: frozenset[str]
    round_begins: frozenset[str]
    vacant: frozenset[str] = frozenset()
    members_join: frozenset[str] = field(default=frozenset(), kw_only=True)
    initial_delay: bool = field(default=False, kw_only=True)
    coordinator: Callable[[Any], Any] | None = field(default=None, kw_only=True)
    member: Callable[..., Any] | None = field(default=None, kw_only=True)
    settings: "type[msgspec.Struct] | None" = field(default=None, kw_only=True)
    running_group: Callable[..., Any] | None = field(default=None, kw_only=True)
    remove_members: Callable[[str, Any], Any] | None = field(default=None, kw_only=True)
    servers: Callable[[Any], Any] | None = field(default=None, kw_only=True)
    load: Callable[[], Any] | None = field(default=None, kw_only=True)
    events: tuple[type[Any], ...] = field(default=(), kw_only=True)
    sentences: Mapping[type[Any], Callable[[Any], str]] = field(default_factory=dict, kw_only=True)
    unowned: Callable[[Iterable[Any]], Mapping[str, tuple[str, str]]] | None = field(
        default=None, kw_only=True
    )
    stops: Mapping[str, str] = field(default_factory=dict, kw_only=True)
    shorter: Mapping[str, Mapping[str, int]] = field(default_factory=dict, kw_only=True)
    needs: Callable[[Any, Any], Iterable[tuple[str, str, int]]] | None = field(default=None, kw_only=True)
    meaningless: Mapping[str, str] = field(default_factory=dict, kw_only=True)
    unread: Mapping[str, str] = field(default_factory=dict, kw_only=True)
    own_epochs: bool = field(default=False, kw_only=True)
    planned: bool = field(default=False, kw_only=True)
    modifiers: frozenset[str] = field(default=frozenset(), kw_only=True)
    aliases: Mapping[str, str] = field(default_factory=dict, kw_only=True)
    of_scenarios: bool = field(default=False, kw_only=True)
    on_kafka: bool = field(default=False, kw_only=True)
    doc: str = ""

    def __post_init__(self) -> None:
        after = {state for following in self.states.values() for state in following}
        unknown = sorted((after | self.at_rest | self.round_begins | self.vacant) - set(self.states))
        if unknown:
            raise ValueError(f"the states of {self.name!r} do not contain {', '.join(unknown)}")


@dataclass(frozen=True, slots=True)
class ProviderSpec:
    """A source of the weights, capacities and racks that an assignor needs beyond the group.

    ``factory(host)`` makes a provider for each consumer. The host runs the consumer: the simulator, or a
    driver of real brokers.
    """

    name: str
    factory: Callable[["Host"], "Provider"]
    doc: str = ""


METRIC_GROUPS = ("stops", "moves", "lag", "balance", "cost")
"""The groups of metrics, in the order in which they are shown. Metrics of other groups follow them."""


@dataclass(frozen=True, slots=True)
class MetricSpec:
    """A figure of a run. ``compute`` takes a `traces.history.History`; ``better`` is 'lower' or 'higher'.

    ``doc`` is one sentence that defines the figure. ``unit`` follows the figure wherever it is shown.
    ``group`` is one of `METRIC_GROUPS`, or a name of the plugin's own. ``headline``: short tables show the
    figure. ``planned``: a trace without messages (`planning.plan`) has the figure, too. ``rests``: it is
    computed from `History.rests`, ``moved`` and ``rounds`` alone, which plans of many groups have without a
    trace. ``optional``: tables leave the figure out if no run has it. ``part_of``: the metric of which this
    one is a part; tables show it below that one, and leave it out where it is 0.
    """

    name: str
    unit: str
    compute: Callable[[Any], float]
    better: str = "lower"
    group: str = field(default="", kw_only=True)
    headline: bool = field(default=False, kw_only=True)
    planned: bool = field(default=False, kw_only=True)
    rests: bool = field(default=False, kw_only=True)
    optional: bool = field(default=False, kw_only=True)
    part_of: str = field(default="", kw_only=True)
    doc: str = ""


@dataclass(frozen=True, slots=True)
class WorkloadSpec:
    """A generator of scenarios: ``generate(seed, row)`` returns a scenario document.

    A row must depend on its arguments alone: rows are made in any order, by many processes. ``options``
    maps further keyword arguments to readers of their text. A reader raises ValueError with the expected
    text. ``required`` are the options without a default.
    """

    name: str
    generate: Callable[..., Mapping[str, Any]]
    options: Mapping[str, Callable[[str], Any]] = field(default_factory=dict, kw_only=True)
    required: tuple[str, ...] = field(default=(), kw_only=True)
    doc: str = ""


@dataclass(frozen=True, slots=True)
class ScenarioEventSpec:
    """A kind of scenario event: its key in a document, its arguments and its effect on a simulated group.

    ``parse(value, extra, where)`` checks the document and returns the arguments, or raises InputError.
    ``apply(stage, arguments)`` carries the event out on a `scenarios.stage.Stage`. ``protocols`` names the
    protocols under which the event has a meaning; empty means all. ``elsewhere`` is the reason why it has
    none under the others. ``fields`` maps the key of the event and
    the keys beside it to JSON schemas, for editors; ``required`` are those keys that an event must have
    besides its own. Without ``fields`` editors accept any value and any key.
    """

    name: str
    parse: Callable[[Any, Mapping[str, Any], str], Any]
    apply: Callable[[Any, Any], None]
    protocols: tuple[str, ...] = field(default=(), kw_only=True)
    elsewhere: str = field(default="", kw_only=True)
    fields: Mapping[str, Any] = field(default_factory=dict, kw_only=True)
    required: tuple[str, ...] = field(default=(), kw_only=True)
    doc: str = ""


@dataclass(frozen=True, slots=True)
class CommandSpec:
    """A subcommand of ``rebalance-lab``: a function with typer's annotations, whose docstring is its help.

    ``function`` may be a reference, ``module:name``: its module is imported when the command is run. Then
    ``doc`` describes the command in the list of commands; otherwise the docstring does. ``document`` is a
    reference to the type of what ``--format json`` prints, for ``rebalance-lab schema NAME``.
    """

    name: str
    function: Callable[..., None] | str
    doc: str = ""
    document: str = ""


@dataclass(frozen=True, slots=True)
class LogFormatSpec:
    """The lines of a program that `diagnose` reads: a `rebalance_logs.LogFormat`.

    ``format`` may be a reference, ``module:name``, whose module is imported when logs are read, or the path
    of a TOML file with its wordings.
    """

    name: str
    format: Any
    doc: str = ""


class Hooks:
    """The hooks. A plugin implements some of them. The results of all plugins are put together."""

    @hookspec
    def assignors(self) -> Iterable[AssignorSpec]:  # type: ignore[empty-body]
        """Assignors, by name."""

    @hookspec
    def protocols(self) -> Iterable[ProtocolSpec]:  # type: ignore[empty-body]
        """Families of rebalance protocols."""

    @hookspec
    def modifiers(self) -> Iterable[ModifierSpec]:  # type: ignore[empty-body]
        """Modifiers of strategies: further parts, each after a plus sign."""

    @hookspec
    def providers(self) -> Iterable[ProviderSpec]:  # type: ignore[empty-body]
        """Providers of weights, capacities and racks."""

    @hookspec
    def metrics(self) -> Iterable[MetricSpec]:  # type: ignore[empty-body]
        """Figures that a comparison shows."""

    @hookspec
    def workloads(self) -> Iterable[WorkloadSpec]:  # type: ignore[empty-body]
        """Generators of scenarios."""

    @hookspec
    def scenario_events(self) -> Iterable[ScenarioEventSpec]:  # type: ignore[empty-body]
        """Kinds of events that a scenario may contain."""

    @hookspec
    def commands(self) -> Iterable[CommandSpec]:  # type: ignore[empty-body]
        """Subcommands of the command line."""

    @hookspec
    def log_formats(self) -> Iterable[LogFormatSpec]:  # type: ignore[empty-body]
        """Programs whose logs tell about groups."""
