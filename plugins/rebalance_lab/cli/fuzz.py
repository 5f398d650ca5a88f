"""``rebalance-lab fuzz``: random scenarios with faults, until a rule is broken."""

import secrets
import shlex
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain, count
from math import inf
from pathlib import Path
from time import monotonic
from typing import Annotated

import msgspec
import typer
import yaml

from coordinator_core.errors import InputError
from coordinator_core.reading.checks import whole
from coordinator_core.reading.durations import parse_duration
from coordinator_core.reading.suggestions import unknown_name
from coordinator_core.registry.registry import Registry, default_registry
from rebalance_lab.cli import options
from rebalance_lab.cli.files import check_path, write_whole
from rebalance_lab.cli.output import ExitStatus, print_hanging, stderr, stdout
from rebalance_lab.fuzzing.campaign import Campaign, Found, Tally, shrink_found, under_every_protocol
from rebalance_lab.fuzzing.campaign import fuzz as run_fuzz
from rebalance_lab.fuzzing.checks import ENDS, HANGS, HASH_SEED, INVARIANTS, Defect
from rebalance_lab.fuzzing.drawing import FAULTS, Document, Range
from rebalance_lab.scenarios.fields import LAST_SEED
from rebalance_lab.scenarios.portable import portable_scenario
from rebalance_lab.scenarios.settings import Setting, is_time, known_settings, parse_config
from rebalance_lab.verdicts.words import counted

DEFAULT_MINUTES = 1.0
SHRINKING_SECONDS = 60
EVERYTHING, NOTHING = "all", "none"
_MOST_REASONS = 3


def fuzz(
    scenarios: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="[SCENARIO]...",
            help="Scenarios whose members, topics, events and settings are kept; else they are drawn.",
        ),
    ] = None,
    strategies: Annotated[
        list[str] | None,
        options.strategy_option(
            "A strategy; can be repeated. Without one, all installed protocols are tried."
        ),
    ] = None,
    minutes: Annotated[
        float | None, typer.Option(min=0, help=f"How long to go on; {DEFAULT_MINUTES:g} when not given.")
    ] = None,
    runs: Annotated[int | None, typer.Option(min=1, metavar="N", help="End after so many runs.")] = None,
    seed: Annotated[
        int | None,
        typer.Option(min=0, help="The seed of everything that is drawn; a new one when not given."),
    ] = None,
    faults: Annotated[
        str,
        typer.Option(metavar="LIST", help=f"The faults that may happen: {', '.join(FAULTS)}; or all, none."),
    ] = EVERYTHING,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="NAME=LOW..HIGH", help="Draw a setting between two values. Can be repeated."
        ),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the smallest scenario that fails here.")
    ] = None,
    every_family: Annotated[
        bool, typer.Option("--every-family", help="Try each strategy under every protocol that takes it.")
    ] = False,
    replay: Annotated[
        bool, typer.Option("--replay", help="Examine the scenarios as they are, with nothing drawn.")
    ] = False,
    jobs: Annotated[int | None, options.jobs_option("one for each core")] = None,
    timeout: Annotated[
        float,
        typer.Option(min=0, metavar="SECONDS", help="How long one run may take; 0 waits for ever."),
    ] = options.DEFAULT_TIMEOUT,
) -> None:
    """Try random events, settings and faults, and write the smallest scenario that breaks a rule.

    Each run is checked: the rules of the protocol hold; everything is owned in time once all faults have
    ended; a run that leaves out the messages of a group at rest has the same trace; the log restores the
    group; metrics agree with a plain computation from the trace; and nothing raises, hangs or depends on the
    hash seed.
    """
    registry = default_registry()
    around = _documents(scenarios or [], registry)
    if replay and not around:
        raise InputError("--replay", "no scenario", "the file of one")
    check_path(out)
    if seed is not None:
        whole(seed, "--seed", low=0, high=LAST_SEED)
    campaign = Campaign(
        tuple(_strategies(strategies or [], every_family, around, registry)),
        secrets.randbelow(2**32) if seed is None else seed,
        tuple(around),
        _faults(faults),
        _ranges(settings or [], registry),
        replay,
    )
    tally = _run(campaign, minutes, runs, jobs, timeout)
    _print(_answers(tally, campaign) if replay else _summary(tally, campaign))
    if tally.found and not replay:
        _give(tally.found[0], campaign, out, registry)
    if tally.found:
        raise typer.Exit(int(ExitStatus.SOME_INPUTS_FAILED))


# --- what is given


def _strategies(
    texts: Sequence[str], every_family: bool, around: Sequence[Document], registry: Registry
) -> list[str]:
    """Return the strategies to try. Without any, all assignors under all protocols that take them.

    Of those that are not named one by one, it is those that can run all given scenarios.

    Raises:
        InputError: if a strategy is unknown, or none can run the scenarios.
    """
    for text in texts:
        registry.strategy(text)
    if texts and not every_family:
        return list(texts)
    more = texts or (*registry.assignors(), "cooperative-sticky+static", "cooperative-sticky+delay=20s")
    found = [whole_text for text in more for whole_text in under_every_protocol(text, registry, around)]
    if not found:
        raise InputError("the scenarios", "no protocol that can run all of them", "scenarios of one protocol")
    return found


def _documents(paths: Sequence[Path], registry: Registry) -> list[Document]:
    """Return the documents of scenarios, without references to other files."""
    return [msgspec.json.decode(portable_scenario(path, registry=registry)) for path in paths]


def _faults(text: str) -> tuple[str, ...]:
    if text in (EVERYTHING, NOTHING):
        return tuple(FAULTS) if text == EVERYTHING else ()
    names = [name.strip() for name in text.split(",")]
    for name in names:
        if name not in FAULTS:
            raise unknown_name("--faults", name, FAULTS)
    return tuple(names)


def _ranges(texts: Sequence[str], registry: Registry) -> dict[str, Range]:
    """Return settings with the least and the largest value to draw.

    Raises:
        InputError: if a text has another form, or a setting is unknown or no number.
    """
    known, ranges = known_settings(registry), {}
    for text in texts:
        name, _, values = text.partition("=")
        low, dots, high = values.partition("..")
        if not (name and low and dots and high):
            raise InputError("--set", repr(text), "NAME=LOW..HIGH, such as session.timeout.ms=6s..45s")
        if name not in known:
            raise unknown_name("--set", name, known)
        ends = [_number(end, known[name], f"--set {name}") for end in (low, high)]
        if ends[0] > ends[1]:
            raise InputError(f"--set {name}", f"{low} above {high}", "the smaller value first")
        for end in ends:
            parse_config({name: end}, "--set: ", registry)
        ranges[name] = (ends[0], ends[1])
    return ranges


def _number(text: str, setting: Setting, where: str) -> int:
    if is_time(setting):
        return parse_duration(int(text) if text.isdecimal() else text, where)
    if setting.type is not int or not text.isdecimal():
        raise InputError(where, repr(text), "a setting and values that are whole numbers or times")
    return int(text)


# --- runs


def _run(
    campaign: Campaign, minutes: float | None, runs: int | None, jobs: int | None, timeout: float
) -> Tally:
    """Run until the time is over, the runs are done, or something is found: all of it, as they are."""
    if minutes is None:
        minutes = DEFAULT_MINUTES if runs is None and not campaign.as_they_are else inf
    ends = monotonic() + 60 * minutes
    with _line() as line:

        def goes_on(tally: Tally) -> bool:
            line(f"{counted(tally.runs, 'run')}, {counted(len(tally.coverage.counts), 'cell')} reached")
            return monotonic() < ends and (runs is None or tally.begun < runs)

        most = inf if campaign.as_they_are else 1
        return run_fuzz(campaign, goes_on=goes_on, most=most, jobs=jobs, timeout=timeout)


@contextmanager
def _line() -> Iterator[Callable[[str], None]]:
    """Show a line that changes on a terminal, and nothing in a pipe."""
    if not sys.stderr.isatty():
        yield lambda text: None  # noqa: ARG005
        return
    with stderr().status("") as status:
        yield status.update


# --- what is found


def _answers(tally: Tally, campaign: Campaign) -> Iterator[str]:
    """Yield what each scenario has shown with each strategy, as far as they were run."""
    defects: dict[int, str] = {}
    for found in tally.found:
        defects.setdefault(found.number, _told(found.defect))
    for number in range(tally.begun):
        name = campaign.around[number // len(campaign.strategies)]["name"]
        yield f"{name}, {campaign.strategy_of(number)}: {defects.get(number, 'nothing found')}"


def _summary(tally: Tally, campaign: Campaign) -> Iterator[str]:
    cells = tally.coverage.counts
    states = {(cell.family, cell.state) for cell in cells}
    what = "nothing found" if not tally.found else f"{len(tally.found)} found"
    strategies = len(campaign.strategies)
    of = "1 strategy" if strategies == 1 else f"{strategies} strategies"
    reached = f"{counted(len(cells), 'cell')} of request, state, member and answer"
    yield (
        f"{counted(tally.runs, 'run')} of {of} with seed {campaign.seed}: {what}; {reached} "
        f"in {counted(len(states), 'state')}"
    )
    for reason, times in sorted(tally.prevented.items(), key=lambda pair: -pair[1])[:_MOST_REASONS]:
        yield f"{times:,} of them need not come to rest: {reason}"


def _give(found: Found, campaign: Campaign, out: Path | None, registry: Registry) -> None:
    """Shrink what was found, write it, and print how to have it again."""
    _print([f"{found.strategy}, run {found.number}: {_told(found.defect)}"])
    if found.defect.check not in (HANGS, ENDS, HASH_SEED):
        ends = monotonic() + SHRINKING_SECONDS
        with _line() as line:
            line("looking for a smaller scenario")
            found = shrink_found(found, registry, lambda: monotonic() < ends)
    path = out or _new_path(f"fuzz-{found.defect.check}-{campaign.seed}")
    head = f"# {_told(found.defect)}\n# {found.strategy}, run {found.number} of seed {campaign.seed}\n"
    write_whole(path, (head + _yaml(found.document)).encode())
    again = f"rebalance-lab fuzz {shlex.quote(str(path))} -s {shlex.quote(found.strategy)} --replay"
    lines = [f"the smallest scenario: {path}", f"again: {again}"]
    if found.defect.check == INVARIANTS:
        lines.append(
            f"what happens: rebalance-lab simulate {shlex.quote(str(path))} -s {shlex.quote(found.strategy)}"
        )
    _print(lines)


def _print(lines: Iterable[str]) -> None:
    console = stdout()
    for line in lines:
        print_hanging(line, console)


def _told(defect: Defect) -> str:
    return f"{defect.check}: {' '.join(defect.detail.split())}"


def _new_path(name: str) -> Path:
    """Return the path of a file that does not exist in the current folder."""
    numbers = chain([""], (f"-{number}" for number in count(2)))
    return next(path for number in numbers if not (path := Path(f"{name}{number}.yaml")).exists())


def _yaml(document: Document) -> str:
    """Return a document as YAML, short lists and mappings in one line."""
    text: str = yaml.safe_dump(document, sort_keys=False, default_flow_style=None, width=110)
    return text
