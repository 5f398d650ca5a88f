"""``rebalance-lab serve`` in a process of its own."""

import os
import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.coordinator_core.cli.commands import COMMAND, ROOT

SECONDS = 60.0


class Served:
    """A broker's process; killed when it is left."""

    def __init__(self, *options: object, listen: str = "127.0.0.1:0", files: int = 0) -> None:
        """``files``: how many it may have open; 0: as many as we."""
        limit = ["sh", "-c", f'ulimit -n {files} && exec "$@"', "sh"] if files else []
        self._process = subprocess.Popen(
            [*limit, *COMMAND, "serve", "--listen", listen, *map(str, options)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=os.environ | {"PYTHONPATH": os.pathsep.join((str(ROOT), str(ROOT / "plugins")))},
            encoding="utf-8",
        )

    def address(self) -> str:
        """Where it listens, once it does."""
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line, self.last_words()
        return line.strip()

    def terminate(self) -> None:
        self._process.terminate()

    def interrupt(self) -> None:
        self._process.send_signal(signal.SIGINT)

    def freeze(self) -> None:
        """It hears and says nothing any more."""
        self._process.send_signal(signal.SIGSTOP)

    def ended(self) -> tuple[int, str, str]:
        """Its exit status, and what it has said on stdout since and on stderr."""
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
        self, kind: type[BaseException] | None, wrong: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process.poll() is None:
            self.kill()
        for pipe in (self._process.stdout, self._process.stderr):
            if pipe is not None:
                pipe.close()


def serving(folder: Path, listen: str, options: Sequence[object] = ()) -> Served:
    return Served("--data-dir", folder, *options, listen=listen)
