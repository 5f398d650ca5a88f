"""Why single runs differ, in sentences computed from their traces: stopped time, waits and moves.

They are about one run of each strategy, and say so: which one is better is shown by a comparison over seeds.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import msgspec

from coordinator_core.errors import InputError
from coordinator_core.protocol import events as ev
from coordinator_core.registry.registry import Registry
from rebalance_lab.traces.causes import CALLBACKS, CAUSES, DETECTION, STANDING
from rebalance_lab.traces.entries import Round
from rebalance_lab.traces.findings import findings
from rebalance_lab.traces.history import History
from rebalance_lab.traces.rounds import rounds_and_rest
from rebalance_lab.traces.trace import Trace
from rebalance_lab.verdicts.balance import avoidable_moves
from rebalance_lab.verdicts.rule import TIE, is_tie
from rebalance_lab.verdicts.story import joining
from rebalance_lab.verdicts.tables import as_text
from rebalance_lab.verdicts.words import NOTABLE_MS, about, clock, counted, in_order, listed_names, numbered

_CALLBACK_BOUNDS = (
    ev.WorkStopped,
    ev.WorkStarted,
    ev.Revoked,
    ev.Lost,
    ev.MemberStarted,
    ev.MemberStopped,
    ev.ConsumerFailed,
)
"""The events with which a callback of an owner begins or ends."""

_MOST_CAUSES = 3
_LEAST_SHARE = 0.05
"""A cause with a smaller share of the stopped time, or of a difference, is not named."""

_MOST_LISTED = 3


@dataclass(frozen=True)
class Account:
    """What a run cost in its window, and why.

    - ``label`` names it among the runs that are explained.
    - ``history``: the run by subject; ``rounds``: the rounds that began in the window.
    - ``costliest``: the round that ended the longest stops of the window, summed over partitions; None if
      there were no stops. It may have begun before the window. ``rest_ms``: the sum of the stops that no
      round ended.
    - ``avoidable``: the moves beyond the fewest from each settled assignment to one as balanced as the next.
    - ``returned``: the number of times at which each consumer got a partition back that others had meanwhile.
    - ``findings``: the faults of the run.
    """

    label: str
    history: History
    rounds: Sequence[Round]
    costliest: Round | None
    rest_ms: int
    avoidable: int
    returned: Mapping[str, int]
    findings: Sequence[str]

    @property
    def trace(self) -> Trace:
        """The trace of the run."""
        return self.history.trace

    @property
    def stopped_ms(self) -> int:
        """The time in which partitions of subscribed topics had no working owner, summed over partitions."""
        return self.history.stops.stopped_ms

    @cached_property
    def waited_ms(self) -> Counter[str]:
        """The time that rounds waited, by the members that they waited for."""
        waited: Counter[str] = Counter()
        for entry in self.rounds:
            for name in entry.waited_for:
                waited[name] += entry.waited_ms or 0
        return waited


@dataclass(frozen=True)
class Explanation:
    """Why runs of a scenario differ.

    ``sentences`` has those about each run by its label, the first of which is its costs. ``differences``
    compare the run that stops partitions least with each of the others.
    """

    scenario: str
    accounts: Sequence[Account]
    sentences: Mapping[str, Sequence[str]]
    differences: Sequence[str]

    @property
    def lines(self) -> list[str]:
        """All sentences, a line each, the differences first. The reasons of a run are indented."""
        lines = list(self.differences)
        for label, (costs, *reasons) in self.sentences.items():
            lines += [f"{label}: {costs}", *(f"  {reason}" for reason in reasons)]
        return lines


def explain(traces: Sequence[Trace], registry: Registry | None = None) -> Explanation:
    """Explain why runs of one scenario differ: where time was lost, who waited for whom, and moves.

    ``registry`` has the protocol families of the traces.

    Raises:
        InputError: if there is no trace, or if they are not of one scenario.
    """
    names = list(dict.fromkeys(trace.scenario for trace in traces))
    if len(names) != 1:
        found = f"traces of {' and '.join(map(repr, names))}" if names else "no trace"
        raise InputError("explain", found, "traces of one scenario")
    accounts = [_account(t, n, registry) for t, n in zip(traces, _labels(traces), strict=True)]
    return Explanation(
        names[0],
        accounts,
        {account.label: list(_sentences(account)) for account in accounts},
        list(_differences(accounts)),
    )


class AccountDocument(msgspec.Struct, frozen=True):
    """A strategy in `ExplanationDocument`. Times are in seconds, or in partition seconds."""

    strategy: str
    seed: int
    sentences: Sequence[str]
    stopped_partition_seconds: float
    stopped_by_cause: Mapping[str, float]
    rounds: int
    moved_partitions: int
    avoidable_moves: int
    returned_partitions: Mapping[str, int]
    waited_for_seconds: Mapping[str, float]
    findings: Sequence[str]


class ExplanationDocument(msgspec.Struct, frozen=True):
    """What ``explain --format json`` prints: the sentences and the figures behind them."""

    scenario: str
    differences: Sequence[str]
    strategies: Sequence[AccountDocument]


def as_document(explanation: Explanation) -> ExplanationDocument:
    """Return the sentences and the figures behind them."""
    accounts = [
        AccountDocument(
            account.trace.strategy,
            account.trace.started.seed,
            explanation.sentences[account.label],
            account.stopped_ms / 1_000,
            {cause: ms / 1_000 for cause, ms in account.history.stops.causes_ms.items() if ms},
            account.history.rounds,
            account.history.moved,
            account.avoidable,
            account.returned,
            {name: ms / 1_000 for name, ms in account.waited_ms.most_common()},
            account.findings,
        )
        for account in explanation.accounts
    ]
    return ExplanationDocument(explanation.scenario, explanation.differences, accounts)


def _labels(traces: Sequence[Trace]) -> list[str]:
    """Return the strategies, with the seeds if they differ, and with numbers if both are alike."""
    seeds = {trace.started.seed for trace in traces}
    labels = [f"{t.strategy}, seed {t.started.seed}" if len(seeds) > 1 else t.strategy for t in traces]
    return numbered(labels)


def _account(trace: Trace, label: str, registry: Registry | None) -> Account:
    history = History(trace, registry)
    every, rest_ms = rounds_and_rest(trace, registry, from_ms=history.from_ms)
    own = [entry for entry in every if entry.began_ms >= history.from_ms]
    most = max((entry for entry in every if entry.stopped_ms), key=lambda e: e.stopped_ms, default=None)
    avoidable = int(avoidable_moves(history))
    return Account(label, history, own, most, rest_ms, avoidable, _returned(history), findings(history))


def _returned(history: History) -> Counter[str]:
    """Count the partitions that each consumer got back after others had owned them."""
    returned: Counter[str] = Counter()
    for spans in history.spans.values():
        owners: list[str] = []
        for span in sorted(spans, key=lambda span: span.from_ms):
            if owners and owners[-1] == span.client:
                continue
            if span.client in owners and span.from_ms > history.from_ms:
                returned[span.client] += 1
            owners.append(span.client)
    return returned


# --- one run


def _sentences(account: Account) -> Iterator[str]:
    history = account.history
    stopped, moved = (
        counted(account.stopped_ms / 1_000, "partition second"),
        counted(history.moved, "partition"),
    )
    yield f"{stopped} stopped, {moved} moved, {counted(history.rounds, 'round')}"
    if account.stopped_ms:
        yield where_stopped(history)
    if account.costliest is not None:
        yield _most(account.costliest, account.rest_ms)
    waited = [name for name, ms in account.waited_ms.most_common() if ms >= NOTABLE_MS]
    most = [*account.costliest.waited_for] if account.costliest is not None else []
    if len(account.rounds) > 1 and waited and waited != most:
        yield f"All rounds together waited longest for {_with_times(account.waited_ms, waited)}."
    if history.moved:
        yield _moves(account)
    yield from (f"It does not work: {finding}." for finding in account.findings)


def where_stopped(history: History, of: str = "Of the stopped time") -> str:
    """Return the largest causes of the stopped time of a run, with the members that they name.

    ``of`` is the beginning of the sentence.
    """
    whole_ms = history.stops.stopped_ms
    parts = [
        f"{as_text(ms / 1_000)} ({_percent(ms, whole_ms)}) {CAUSES[cause].meanwhile}{_named(cause, history)}"
        for cause, ms in Counter(history.stops.causes_ms).most_common(_MOST_CAUSES)
        if ms and ms >= _LEAST_SHARE * whole_ms
    ]
    return f"{of}: {'; '.join(parts)}."


def _named(cause: str, history: History) -> str:
    """Name the members that ended, stood still, or ran callbacks, if that is the cause."""
    names = _in_callbacks(history) if cause == CALLBACKS else []
    if cause in (DETECTION, STANDING):
        least_ms = _LEAST_SHARE * history.stops.causes_ms[cause]
        absent_ms = history.stops.absent_ms.items()
        names = [client for (of, client), ms in absent_ms if of == cause and ms >= least_ms]
    return f" ({listed_names(names, _MOST_LISTED)})" if names else ""


def _in_callbacks(history: History) -> list[str]:
    """Return the owners that ran callbacks in the window, the one that did so longest first."""
    called_ms: Counter[str] = Counter()
    since_ms: dict[str, int] = {}
    for line in history.trace.events:
        at_ms, event = line.at_ms, line.event
        if not isinstance(event, _CALLBACK_BOUNDS):
            continue
        if event.client in since_ms:
            called_ms[event.client] += max(0, at_ms - max(since_ms.pop(event.client), history.from_ms))
        if isinstance(event, ev.WorkStopped) and event.why == "callback":
            since_ms[event.client] = at_ms
    for client, ms in since_ms.items():
        called_ms[client] += history.started.duration_ms - max(ms, history.from_ms)
    return [client for client, ms in called_ms.most_common() if ms]


def _most(entry: Round, rest_ms: int) -> str:
    """Describe the round that ended the longest stops: its causes, and the members that it waited for.

    Longer stops that no round ended come first. The time of a stop may have passed before the round that
    ended it, or during an earlier one, so it is not said to be in a round.
    """
    most = "Most in stops"
    if rest_ms > entry.stopped_ms:
        most = f"Most in stops that no round ended, {about(rest_ms)} in sum; of the others most in those"
    waited = f" It waited {joining(entry)}." if (entry.waited_ms or 0) >= NOTABLE_MS else ""
    return (
        f"{most} that {entry.name} ended, which began at {clock(entry.began_ms).strip()} because"
        f" {entry.causes[0]}:"
        f" {counted(entry.stopped, 'partition')} stood still, {about(entry.stopped_ms)} in sum,"
        f" {about(entry.longest_stop_ms)} at most.{waited}"
    )


def _with_times(times_ms: Mapping[str, int], names: Sequence[str]) -> str:
    shown = [f"{name} ({about(times_ms[name])})" for name in names[:_MOST_LISTED]]
    rest = len(names) - len(shown)
    return f"{', '.join(shown)} and {rest} more" if rest else listed_names(shown)


def _moves(account: Account) -> str:
    moved, returned = account.history.moved, account.returned
    avoidable = "none was avoidable"
    if account.avoidable:
        verb = "was" if account.avoidable == 1 else "were"
        fewest = f"an assignment as balanced needs {moved - account.avoidable:,}"
        avoidable = f"{account.avoidable:,} {verb} avoidable: {fewest}"
    if returned:
        names = sorted(returned, key=lambda name: (-returned[name], in_order(name)))
        owners = listed_names([f"{name} ({returned[name]:,})" for name in names], _MOST_LISTED)
        avoidable += f"; {sum(returned.values()):,} went back to an earlier owner: {owners}"
    return f"Of {counted(moved, 'move')} {avoidable}."


# --- differences


def _differences(accounts: Sequence[Account]) -> Iterator[str]:
    """Compare the run that stops partitions least with each of the others. A run with findings is no best."""
    working = [account for account in accounts if not account.findings]
    if len(accounts) < 2 or not working:
        return
    best = min(working, key=lambda account: account.stopped_ms)
    for other in accounts:
        if other is not best:
            yield _stops_differ(best, other)
            if other.history.moved != best.history.moved:
                yield _moves_differ(best, other)


def _stops_differ(best: Account, other: Account) -> str:
    less_ms = other.stopped_ms - best.stopped_ms
    if not other.stopped_ms:
        return f"{best.label} and {other.label} stop no partition in one run."
    if is_tie(best.stopped_ms, other.stopped_ms):
        return f"{best.label} and {other.label} stop partitions alike in one run, within {_percent(TIE, 1)}."
    if less_ms < 0:  # the best one of those that work
        return f"{other.label} stops partitions less than {best.label}, but does not work."
    before, after = other.history.stops.causes_ms, best.history.stops.causes_ms
    changes = {cause: before[cause] - after[cause] for cause in before}
    parts = [
        f"{as_text(abs(ms) / 1_000)} {'less' if ms > 0 else 'more'} {CAUSES[cause].meanwhile}"
        for cause, ms in sorted(changes.items(), key=lambda item: -abs(item[1]))[:_MOST_CAUSES]
        if abs(ms) >= _LEAST_SHARE * less_ms
    ]
    rounds = ""
    if best.history.rounds != other.history.rounds:
        own, others = best.history.rounds, other.history.rounds
        rounds = f" It has {counted(own, 'round')}, {other.label} {others:,}."
    less = f"{counted(less_ms / 1_000, 'partition second')} ({_percent(less_ms, other.stopped_ms)}) less"
    return (
        f"{best.label} stops partitions for {less} than {other.label} in one run: {', '.join(parts)}.{rounds}"
    )


def _moves_differ(best: Account, other: Account) -> str:
    fewer, more = sorted((best, other), key=lambda account: account.history.moved)
    count = more.history.moved - fewer.history.moved
    avoidable = f" ({more.avoidable:,} avoidable)" if more.avoidable else ""
    return (
        f"{more.label} moves {counted(count, 'partition')} more than {fewer.label}:"
        f" {more.history.moved:,}{avoidable} against {fewer.history.moved:,}."
    )


def _percent(part: float, whole: float) -> str:
    return f"{100 * part / whole:.0f} %"
