"""Space on the disk that is kept for deleting records when the disk is full."""

import logging
import os
from contextlib import suppress
from pathlib import Path
from shutil import disk_usage

LOG = logging.getLogger(__name__)

LOG_BYTES = 4 * 1024 * 1024
"""The usual size of the write-ahead log: that after which SQLite moves it into the database."""

RESERVE_BYTES = 2 * LOG_BYTES
"""Enough for a write-ahead log, and for its pages that are new to the database."""


class Reserve:
    """A file that is deleted when the disk is full and records are to be deleted.

    SQLite writes before it deletes: it cannot free space on a disk without any. ``path`` None: there is none.
    """

    def __init__(self, path: Path | None) -> None:
        self._path = path

    def fill(self) -> None:
        """Reserve the space, as far as the disk has it beside a write-ahead log."""
        if self._path is None or self._path.exists():
            return
        try:
            size = min(RESERVE_BYTES, disk_usage(self._path.parent).free - LOG_BYTES)
            if size > 0:
                with self._path.open("wb") as file:
                    _allocate(file.fileno(), size)
        except OSError as error:
            LOG.warning("%s: no space is reserved for deleting records: %s", self._path, error.strerror)
            self.release()

    def release(self) -> None:
        """Give the space back to the disk."""
        if self._path is not None:
            with suppress(OSError):
                self._path.unlink(missing_ok=True)


def _allocate(file: int, size: int) -> None:
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(file, 0, size)
    else:
        os.write(file, bytes(size))
