"""``rebalance-lab assign``: reads groups in JSON Lines and writes the same lines with their assignments."""

import gzip
import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, BinaryIO, cast

import msgspec
import typer

from coordinator_core.assigning.assignor import Assignor
from coordinator_core.assigning.combinators import with_deadline
from coordinator_core.assigning.computing import compute_assignment
from coordinator_core.cli.output import ExitStatus, complain, give_up, print_traceback
from coordinator_core.cli.running import DEFAULT_TIMEOUT, TIMEOUT_HELP
from coordinator_core.cli.scenarios import strategies_beginning
from coordinator_core.documents.groups import assignment_document, parse_group
from coordinator_core.errors import AssignmentError, InputError, RebalanceLabError
from coordinator_core.reading.checks import describe
from coordinator_core.reading.raised import traceback_of
from coordinator_core.registry.registry import Registry, default_registry

LONGEST_LINE = 64 * 2**20
_CHUNK = 2**20
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


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
            metavar="NAME",
            autocompletion=strategies_beginning,
            help="Use this assignor, even for lines that name another.",
        ),
    ] = None,
    timeout: Annotated[float, typer.Option(min=0, metavar="SECONDS", help=TIMEOUT_HELP)] = DEFAULT_TIMEOUT,
) -> None:
    """Assign partitions to the members of groups, one group a line.

    Each line is written with "assignment" added, or with "error" if it fails. A line that fails does not stop
    the others; the exit status is 1 at the end.
    """
    registry = default_registry()
    if assignor is not None:
        registry.assignor(assignor)
    failed = count = 0
    with _opened(file) as stream:
        for number, line in _lines(stream, file):
            document = assigned_line(line, f"line {number}", assignor, registry, timeout=timeout)
            failed += "error" in document
            count += 1
            sys.stdout.buffer.write(msgspec.json.encode(document) + b"\n")
    sys.stdout.buffer.flush()
    if not count:
        give_up(InputError(_title(file), "nothing (it is empty)", "a group a line, in JSON"))
    if failed:
        complain(f'{failed:,} of {count:,} lines failed; see their "error"')
        raise typer.Exit(int(ExitStatus.SOME_INPUTS_FAILED))


def assigned_line(
    line: bytes | InputError, where: str, assignor: str | None, registry: Registry, *, timeout: float = 0
) -> dict[str, Any]:
    """Return the document of a line with "assignment" and the assignor's "report", or with "error".

    It is an error if the assignor takes longer than `timeout` seconds; 0 means no limit.
    """
    document: dict[str, Any] = {}
    try:
        if isinstance(line, InputError):
            raise line
        document = _decoded(line, where)
        document.pop("assignment", None)
        document.pop("error", None)
        document.pop("report", None)
        parsed = parse_group(document, where)
        name = assignor or parsed.assignor
        if name is None:
            expected = f"one of {', '.join(sorted(registry.assignors()))}, here or as --assignor"
            raise InputError(f"{where}: assignor", "nothing", expected)
        made = _assignor(name, where, registry)
        limited = with_deadline(made, timeout) if timeout else made
        assignment = compute_assignment(limited, parsed.cluster, parsed.group)
        document["assignment"] = assignment_document(assignment, list(parsed.group))
        if assignment.report:
            document["report"] = assignment.report
    except AssignmentError as error:
        name = document.get("name")
        document["error"] = str(error.of(where if name is None else f"{where} ({name})"))
        print_traceback(traceback_of(error))
    except RebalanceLabError as error:
        document["error"] = str(error)
        print_traceback(traceback_of(error))
    return document


def _assignor(name: str, where: str, registry: Registry) -> Assignor:
    try:
        return registry.assignor(name)
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


def _lines(stream: BinaryIO, name: str) -> Iterator[tuple[int, bytes | InputError]]:
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
