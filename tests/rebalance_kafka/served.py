"""``rebalance-lab serve`` as a process."""

import os
import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.rebalance_lab.cli.commands import COMMAND, ROOT

SECONDS = 60.0


class Served:
    """A broker's process, which is killed on leaving the block."""

    def __init__(self, *options: object, listen: str = "127.0.0.1:0", before: str = "pass") -> None:
        """``before``: a statement that the process runs before the command."""
        *python, command = COMMAND
        self._process = subprocess.Popen(
            [*python, f"{before}; {command}", "serve", "--listen", listen, *map(str, options)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=os.environ | {"PYTHONPATH": os.pathsep.join((str(ROOT), str(ROOT / "plugins")))},
            encoding="utf-8",
        )

    @property
    def pid(self) -> int:
        return self._process.pid

    def address(self) -> str:
        """Wait until it listens, and return where."""
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line, self.last_words()
        return line.strip()

    def next_error(self) -> str:
        """Wait for the next line on stderr."""
        assert self._process.stderr is not None
        return self._process.stderr.readline().rstrip("\n")

    def terminate(self) -> None:
        self._process.terminate()

    def interrupt(self) -> None:
        self._process.send_signal(signal.SIGINT)

    def freeze(self) -> None:
        """Stop it without ending it."""
        self._process.send_signal(signal.SIGSTOP)

    def ended(self) -> tuple[int, str, str]:
        """Wait for its end. Return its exit status and the rest of stdout and stderr."""
        out, err = self._process.communicate(timeout=SECONDS)
        return self._process.returncode, out, err

    def kill(self) -> None:
        self._process.kill()
        self._process.communicate(timeout=SECONDS)

    def last_words(self) -> str:
        self._process.kill()
        return self._process.communicate(timeout=SECONDS)[1]

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process.poll() is None:
            self.kill()
        for pipe in (self._process.stdout, self._process.stderr):
            if pipe is not None:
                pipe.close()


def serving(folder: Path, listen: str, options: Sequence[object] = ()) -> Served:
    return Served("--data-dir", folder, *options, listen=listen)
