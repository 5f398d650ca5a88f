"""Space on the disk that is kept for deleting records when the disk is full."""

import logging
import os
from contextlib import suppress
from pathlib import Path

LOG = logging.getLogger(__name__)

RESERVE_BYTES = 8 * 1024 * 1024
"""Enough for a write-ahead log of the usual size, 4 MB, and for its pages that are new to the database."""


class Reserve:
    """A file of zeros that is deleted when the disk is full and records are to be deleted.

    SQLite writes before it deletes: it cannot free space on a disk without any. ``path`` None: there is none.
    """

    def __init__(self, path: Path | None) -> None:
        self._path = path

    def fill(self) -> None:
        """Reserve the space, if the disk has it."""
        if self._path is None or (self._path.exists() and self._path.stat().st_size >= RESERVE_BYTES):
            return
        try:
            with self._path.open("wb") as file:
                if hasattr(os, "posix_fallocate"):
                    os.posix_fallocate(file.fileno(), 0, RESERVE_BYTES)
                else:
                    file.write(bytes(RESERVE_BYTES))
        except OSError as error:
            LOG.warning("%s: no space is reserved for deleting records: %s", self._path, error.strerror)
            self.release()

    def release(self) -> None:
        """Give the space back to the disk."""
        if self._path is not None:
            with suppress(OSError):
                self._path.unlink(missing_ok=True)
