"""Run the tests of a fault in a copy of the program that has the fault."""

import os
import re
import resource
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterable
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple

from tests.mutants.table import Mutant
from tests.places import ROOT

LEFT_OUT = shutil.ignore_patterns(".*", "__pycache__", "node_modules")
PYTEST = (sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider")
EXAMPLES = ("--hypothesis-profile=first", "--hypothesis-seed=0")
"""The same examples each time, of which the first that fails is not made smaller."""
MEMORY_BYTES = 6 * 2**30

_FAILED = re.compile(r"^(?:FAILED|ERROR) (\S+)", re.MULTILINE)


class Fate(StrEnum):
    KILLED = "killed"
    SURVIVED = "survived"
    NOT_TRIED = "not tried"


class Outcome(NamedTuple):
    mutant: Mutant
    fate: Fate
    why: str
    """The first test that failed, or the end of the tests' output."""

    @property
    def is_as_listed(self) -> bool:
        return self.fate is (Fate.SURVIVED if self.mutant.survives else Fate.KILLED)


class Copy:
    """A copy of the program and its tests."""

    def __init__(self, root: Path) -> None:
        self.root = root
        shutil.copytree(ROOT, root, ignore=LEFT_OUT)

    def attempt(self, mutant: Mutant, limit_seconds: float) -> Outcome:
        """Run the tests of the fault, and mend it again."""
        path = self.root / mutant.path
        source = path.read_text(encoding="utf-8")
        self._write(path, mutant.applied(source))
        try:
            status, output = self.test(mutant.tests, limit_seconds)
        finally:
            self._write(path, source)
        failed = _FAILED.search(output)
        if status is None:
            return Outcome(mutant, Fate.KILLED, f"by the limit of {limit_seconds:g} s")
        if status == 0:
            return Outcome(mutant, Fate.SURVIVED, mutant.survives)
        if failed is not None:
            return Outcome(mutant, Fate.KILLED, failed[1])
        return Outcome(mutant, Fate.NOT_TRIED, f"status {status}: {output[-500:]}")

    def test(self, tests: Iterable[str], limit_seconds: float) -> tuple[int | None, str]:
        """Run tests up to the first failure. Return the exit status, or None at the limit, and the output."""
        places = os.pathsep.join((str(self.root), str(self.root / "plugins")))
        process = subprocess.Popen(
            [*PYTEST, *EXAMPLES, *tests],
            cwd=self.root,
            env={**os.environ, "PYTHONPATH": places},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        try:
            output, _ = process.communicate(timeout=limit_seconds)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            return None, ""
        finally:
            shutil.rmtree(self.root / ".hypothesis", ignore_errors=True)
        return process.returncode, output

    def _write(self, path: Path, source: str) -> None:
        """Write a source, and leave none of its compiled forms: they count as current within a second."""
        path.write_text(source, encoding="utf-8")
        for compiled in (path.parent / "__pycache__").glob(f"{path.stem}.*"):
            compiled.unlink()


def limit_memory() -> None:
    """Limit the memory of this process, and so of each that it starts: a fault may be an endless loop."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, resource.getrlimit(resource.RLIMIT_AS)[1]))
