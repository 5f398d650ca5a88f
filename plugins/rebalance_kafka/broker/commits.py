"""The number of commits of a database, in a file beside it, which shows that the last of them are missing."""

import logging
import os
from pathlib import Path
from struct import Struct
from zlib import crc32

from coordinator_core.errors import InputError

LOG = logging.getLogger(__name__)

SYNC_AFTER = 1_000
"""Commits after which the file is synchronised."""

_FORM = Struct(">QI")
"""The number, and a checksum of its bytes."""


class Commits:
    """The number of commits that were acknowledged.

    The database counts its commits, too, in the same transactions. A database with fewer commits than the
    file has lost the end of its write-ahead log, or all of it, or is older than the file. This is found

    - always if only processes ended, however they did, and whatever was cut off, deleted or copied since;
    - after a power failure, for all commits up to the last one at which the file was synchronised, and for
      those whose number the system has written since. The last `SYNC_AFTER` commits may be missing unnoticed
      on a disk that loses what SQLite has synchronised.

    It is not found if the file is lost together with them, which gives a warning, or is older, too: a copy of
    the whole folder is whole. A last write that is incomplete is not missing: it was never acknowledged.

    ``path`` None: there is no file, and nothing is found.
    """

    def __init__(self, path: Path | None) -> None:
        self._path, self.number = path, 0
        self._file: int | None = None
        self._unsynchronised = 0
        self._said = ""

    def compare(self, number: int) -> None:
        """Compare the file with the number that the database has. The file stays as it is.

        Raises:
            InputError: if the database has fewer commits.
            OSError: if the file cannot be read.
        """
        self.number = number
        if self._path is None:
            return
        data = self._path.read_bytes() if self._path.exists() else b""
        noted = _decoded(data)
        if noted is not None and noted > number:
            name, lost = self._path.name, noted - number
            found = f"{noted:,} commits, and {number:,} in the database: the last {lost:,} are missing"
            expected = "all of them; restore all files of the folder from one copy"
            raise InputError(str(self._path), found, f"{expected}, or delete {name}, which loses them")
        if noted is None and (number or data):
            found = "is damaged" if data else "does not exist"
            LOG.warning("%s %s: whether the last writes are missing is not known", self._path, found)

    def open(self) -> None:
        """Continue from the number that the database has.

        Raises:
            OSError: if the file cannot be opened.
        """
        if self._path is None:
            return
        self._file = os.open(self._path, os.O_RDWR | os.O_CREAT | getattr(os, "O_BINARY", 0), 0o666)
        self._write(is_synchronised=True)

    def note(self, number: int) -> None:
        """Note the number of a commit. If the file cannot be written, its number is too low: no error."""
        self.number = number
        self._unsynchronised += 1
        self._write(is_synchronised=self._unsynchronised >= SYNC_AFTER)

    def close(self) -> None:
        """Synchronise and close the file."""
        if self._unsynchronised:
            self._write(is_synchronised=True)
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def _write(self, *, is_synchronised: bool) -> None:
        if self._file is None:
            return
        try:
            os.lseek(self._file, 0, os.SEEK_SET)
            os.write(self._file, _FORM.pack(self.number, crc32(self.number.to_bytes(8, "big"))))
            if is_synchronised:
                os.fsync(self._file)
                self._unsynchronised = 0
        except OSError as error:
            text = f"{self._path}: {error.strerror}, and the number of commits is not noted"
            if text != self._said:
                LOG.warning("%s", text)
            self._said = text


def _decoded(data: bytes) -> int | None:
    """Return the number in the file, None if it is damaged."""
    if len(data) != _FORM.size:
        return None
    number, checksum = _FORM.unpack(data)
    return int(number) if crc32(data[:8]) == checksum else None
