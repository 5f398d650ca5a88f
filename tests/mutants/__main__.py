"""``python -m tests.mutants``: plant one fault after the other, and see whether the fast tests fail."""

import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from queue import SimpleQueue
from random import Random
from typing import Annotated

import typer

from tests.mutants.table import Mutant, MutantError, errors, mutants, rooms
from tests.mutants.trying import Copy, Fate, Outcome, limit_memory

CHECK_SECONDS = 3600.0


def main(
    room: Annotated[list[str] | None, typer.Option("--room", "-r", help="Can be repeated.")] = None,
    only: Annotated[list[str] | None, typer.Option("--only", help="A fault's name. Can be repeated.")] = None,
    jobs: Annotated[int, typer.Option("--jobs", "-j", min=1, help="Faults tried at the same time.")] = 1,
    sample: Annotated[int | None, typer.Option(min=1, help="Try this many, drawn at random.")] = None,
    seed: Annotated[int, typer.Option(help="The seed of --sample.")] = 0,
    limit: Annotated[float, typer.Option(help="Seconds for the tests of a fault.")] = 120.0,
    listed: Annotated[bool, typer.Option("--list", help="Print the faults, and try none.")] = False,
    unchecked: Annotated[
        bool, typer.Option("--unchecked", help="Do not run the tests without a fault first.")
    ] = False,
) -> None:
    """Print the fate of each fault. The status is 1 if one has another fate than the table says."""
    try:
        chosen = choose(room or rooms(), only or [], sample, seed)
    except MutantError as error:
        sys.exit(str(error))
    if wrong := [error for mutant in chosen for error in errors(mutant)]:
        sys.exit("\n".join(wrong))
    if listed:
        for mutant in chosen:
            typer.echo(f"{mutant.room} {mutant.name}  {mutant.path}\n- {mutant.line}\n+ {mutant.fault}")
        return
    limit_memory()
    with tempfile.TemporaryDirectory() as folder:
        copies = [Copy(Path(folder) / f"copy-{number}") for number in range(jobs)]
        if not unchecked:
            status, output = copies[0].test(
                sorted({name for mutant in chosen for name in mutant.tests}), CHECK_SECONDS
            )
            if status != 0:
                sys.exit(f"The tests fail without a fault.\n{output}")
        outcomes = list(tried(chosen, copies, limit))
    report(outcomes)
    sys.exit(0 if all(outcome.is_as_listed for outcome in outcomes) else 1)


def choose(names: Sequence[str], only: Sequence[str], sample: int | None, seed: int) -> list[Mutant]:
    """Return the faults of rooms, or those of some names, or as many drawn from them.

    Raises:
        MutantError: if a room or a fault does not exist.
    """
    known = rooms()
    if unknown := [name for name in names if name not in known]:
        raise MutantError(f"No such room: {', '.join(unknown)}. The rooms are {', '.join(known)}.")
    found = [mutant for name in names for mutant in mutants(name)]
    if unknown := sorted(set(only) - {mutant.name for mutant in found}):
        raise MutantError(f"No such fault: {', '.join(unknown)}. --list prints all.")
    if only:
        found = [mutant for mutant in found if mutant.name in only]
    if sample is not None:
        found = Random(seed).sample(found, min(sample, len(found)))
    return found


def tried(chosen: Sequence[Mutant], copies: Sequence[Copy], limit_seconds: float) -> Iterator[Outcome]:
    """Try each fault in a copy that no other one uses, and print what became of it."""
    free: SimpleQueue[Copy] = SimpleQueue()
    for copy in copies:
        free.put(copy)

    def attempt(mutant: Mutant) -> Outcome:
        copy = free.get()
        try:
            return copy.attempt(mutant, limit_seconds)
        finally:
            free.put(copy)

    with ThreadPoolExecutor(len(copies)) as pool:
        for done in as_completed([pool.submit(attempt, mutant) for mutant in chosen]):
            outcome = done.result()
            mark = " " if outcome.is_as_listed else "!"
            typer.echo(f"{mark} {outcome.fate:9} {outcome.mutant.room} {outcome.mutant.name}: {outcome.why}")
            sys.stdout.flush()
            yield outcome


def report(outcomes: Sequence[Outcome]) -> None:
    """Print a line for each room, and the share that was killed."""
    count = Counter((outcome.mutant.room, outcome.fate) for outcome in outcomes)
    for room in sorted({outcome.mutant.room for outcome in outcomes}):
        figures = (f"{count[room, fate]} {fate}" for fate in Fate if count[room, fate])
        typer.echo(f"{room}: {', '.join(figures)}")
    killed = sum(outcome.fate is Fate.KILLED for outcome in outcomes)
    typer.echo(f"{killed} of {len(outcomes)} killed ({killed / len(outcomes):.1%})")


if __name__ == "__main__":
    typer.run(main)
