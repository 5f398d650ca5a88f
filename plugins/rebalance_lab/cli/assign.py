"""``rebalance-lab assign``: reads groups in JSON Lines and writes the same lines with their assignments."""

import gzip
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Annotated, Any, BinaryIO, NoReturn, TypeAlias, cast

import msgspec
import typer

from coordinator_core.assigning.assignor import Assignor
from coordinator_core.assigning.computing import run
from coordinator_core.assigning.limits import each_within, exits_raise, outcome_of
from coordinator_core.assigning.problem import build_problem
from coordinator_core.errors import AssignmentError, InputError, RebalanceLabError
from coordinator_core.model import GroupAssignment
from coordinator_core.reading.checks import describe
from coordinator_core.reading.raised import traceback_of
from coordinator_core.registry.registry import default_registry
from rebalance_lab.cli import options
from rebalance_lab.cli.output import ExitStatus, complain, give_up, print_traceback
from rebalance_lab.scenarios.groups import GroupDocument, assignment_document, parse_group
from rebalance_lab.simulation.world.collector import collecting_rarely

LONGEST_LINE = 64 * 2**20
_CHUNK = 2**20
_BATCH = 100
"""The most lines whose groups are assigned one after the other in a thread, which has the limit of time."""
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"

_Line: TypeAlias = tuple[int, bytes | InputError]
"""The number of a line, and the line or the error of a line that is too long."""


def assign(
    file: Annotated[
        str,
        typer.Argument(
            metavar="FILE", help="JSON Lines, one group a line; .gz is unpacked; - reads standard input."
        ),
    ] = "-",
    assignor: Annotated[
        str | None,
        typer.Option(
            "--assignor",
            "-a",
            "-s",
            metavar="NAME",
            autocompletion=options.strategies_beginning,
            help="Use this assignor, even for lines that name another.",
        ),
    ] = None,
    timeout: options.TimeoutOption = options.DEFAULT_TIMEOUT,
) -> None:
    """Assign partitions to the members of groups, one group a line.

    Each line is written with "assignment" added, or with "error" if it fails. A line that fails does not stop
    the others; the exit status is 1 at the end.
    """
    registry = default_registry()
    strategy_of = cache(partial(registry.strategy, what="assignor"))

    def make(name: str) -> Assignor:
        return registry.build(strategy_of(name))

    if assignor is not None:
        make(assignor)
    failed = count = 0
    with _opened(file) as stream, collecting_rarely(), exits_raise():
        for batch in _batches(_lines(stream, file)):
            groups = [_group(line, f"line {number}", assignor, make) for number, line in batch]
            for group, outcome in zip(groups, _outcomes(groups, timeout), strict=True):
                document = group.written(outcome)
                failed += "error" in document
                count += 1
                sys.stdout.buffer.write(msgspec.json.encode(document) + b"\n")
    sys.stdout.buffer.flush()
    if not count:
        give_up(InputError(_title(file), "nothing (it is empty)", "a group a line, in JSON"))
    if failed:
        complain(f'{failed:,} of {count:,} lines failed; see their "error"')
        raise typer.Exit(int(ExitStatus.SOME_INPUTS_FAILED))


@dataclass(frozen=True, slots=True)
class _Group:
    """The group of a line: its document, and the call that assigns it or raises the error of the line."""

    where: str
    document: dict[str, Any]
    call: Callable[[], GroupAssignment]
    assignor: str = ""
    members: Sequence[str] = ()

    def written(self, outcome: tuple[GroupAssignment] | BaseException) -> dict[str, Any]:
        """Return the document with "assignment" and the assignor's "report", or with "error"."""
        if isinstance(outcome, tuple):
            (assignment,) = outcome
            listed = {"assignment": assignment_document(assignment, self.members)}
            report = {"report": assignment.report} if assignment.report else {}
            return {**self.document, **listed, **report}
        if isinstance(outcome, TimeoutError):
            outcome = AssignmentError(self.assignor, [str(outcome)])
        if not isinstance(outcome, RebalanceLabError):
            raise outcome
        print_traceback(traceback_of(outcome))
        if isinstance(outcome, AssignmentError):
            name = self.document.get("name")
            outcome = outcome.of(self.where if name is None else f"{self.where} ({name})")
        return {**self.document, "error": str(outcome)}


def _outcomes(groups: Sequence[_Group], timeout: float) -> Iterator[tuple[GroupAssignment] | BaseException]:
    calls = [group.call for group in groups]
    return each_within(timeout, calls) if timeout else map(outcome_of, calls)


def _group(
    line: bytes | InputError, where: str, assignor: str | None, make: Callable[[str], Assignor]
) -> _Group:
    """Return the group of a line. ``make`` returns a fresh assignor."""
    document: dict[str, Any] = {}
    try:
        if isinstance(line, InputError):
            raise line
        document = _decoded(line, where)
        for field in ("assignment", "error", "report"):
            document.pop(field, None)
        parsed = parse_group(document, where)
        name = assignor or parsed.assignor
        if name is None:
            expected = f"one of {', '.join(sorted(default_registry().assignors()))}, here or as --assignor"
            raise InputError(f"{where}: assignor", "nothing", expected)
        made = _made(name, where, make)
    except RebalanceLabError as error:
        return _Group(where, document, partial(_raise, error))
    return _Group(where, document, partial(_assigned, made, parsed), made.name, list(parsed.group))


def _assigned(assignor: Assignor, parsed: GroupDocument) -> GroupAssignment:
    return run(assignor, build_problem(parsed.cluster, parsed.group))


def _raise(error: RebalanceLabError) -> NoReturn:
    raise error


def _made(name: str, where: str, make: Callable[[str], Assignor]) -> Assignor:
    try:
        return make(name)
    except InputError as error:
        raise InputError(f"{where}: {error.where}", error.found, error.expected) from None


def _decoded(line: bytes, where: str) -> dict[str, Any]:
    try:
        document = msgspec.json.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        found = f"what is not JSON ({error})"
        raise InputError(where, found, "a group as a JSON object") from None
    if not isinstance(document, dict):
        raise InputError(where, describe(document), "a group as a JSON object")
    return document


def _lines(stream: BinaryIO, name: str) -> Iterator[_Line]:
    """Yield the lines that are not blank with their numbers, and an error for a line that is too long."""
    number = 0
    try:
        while line := stream.readline(LONGEST_LINE + 1):
            number += 1
            line = line.removeprefix(_BYTE_ORDER_MARK) if number == 1 else line
            if len(line) > LONGEST_LINE and not line.endswith(b"\n"):
                size = len(line) + _skip_line(stream)
                found = f"a line of {size:,} bytes"
                yield number, InputError(f"line {number}", found, f"at most {LONGEST_LINE:,} bytes")
            elif line.strip():
                yield number, line
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(_title(name), f"what cannot be read after line {number} ({error})", "text") from None


def _batches(lines: Iterable[_Line]) -> Iterator[list[_Line]]:
    """Yield the lines in batches of limited size. An error follows the lines before it."""
    batch: list[_Line] = []
    size = 0
    try:
        for number, line in lines:
            batch.append((number, line))
            size += len(line) if isinstance(line, bytes) else 0
            if size > _CHUNK or len(batch) == _BATCH:
                yield batch
                batch, size = [], 0
    except InputError:
        yield batch
        raise
    yield batch


def _skip_line(stream: BinaryIO) -> int:
    skipped = 0
    while piece := stream.readline(_CHUNK):
        skipped += len(piece)
        if piece.endswith(b"\n"):
            break
    return skipped


@contextmanager
def _opened(name: str) -> Iterator[BinaryIO]:
    if name == "-":
        yield sys.stdin.buffer
        return
    path = Path(name)
    try:
        opened = gzip.open(path) if path.suffix == ".gz" else path.open("rb")  # noqa: SIM115
    except OSError as error:
        raise InputError(
            name, f"a file that cannot be read ({error.strerror})", "groups in JSON Lines"
        ) from None
    with opened as stream:
        yield cast("BinaryIO", stream)


def _title(name: str) -> str:
    return "standard input" if name == "-" else name
