"""One run at a time writes to a folder: a file in it says which, and is renewed while the run goes on.

The file is in the folder of the scores, in whatever file system that is. Nothing is deleted: a run that ends
says so in the file. A run that was killed cannot say so. Its lease ends `LEASE_SECONDS` after the last
renewal, or at once for a run of this machine whose process has ended.
"""

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event, Thread
from time import time
from typing import TYPE_CHECKING, Any

import msgspec

from coordinator_core.errors import InputError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LEASE_SECONDS = 60.0
RENEW_SECONDS = 10.0
NAME = "_lease.json"
"""Spark does not read files whose name begins with an underscore."""


class Lease(msgspec.Struct, frozen=True):
    """Who writes to a folder. ``at``: seconds since 1970 of the last renewal; 0 after the end."""

    run_id: str
    host: str
    process: int
    at: float

    def holds(self, now: float) -> bool:
        """Return whether the run goes on, as far as is known here."""
        if now - self.at > LEASE_SECONDS:
            return False
        return self.host != socket.gethostname() or _lives(self.process)


@contextmanager
def leased(spark: "SparkSession", folder: str, run_id: str) -> Iterator[None]:
    """Hold the lease of a folder.

    Raises:
        InputError: if another run holds it.
    """
    file = _File(spark, folder)
    mine = Lease(run_id, socket.gethostname(), os.getpid(), time())
    is_new = not file.exists()
    before = None if is_new else file.read()
    if before is not None and before.holds(time()):
        _refuse(folder, before)
    file.write(mine, new=is_new)
    now = file.read()
    if now is not None and now.run_id != run_id:
        _refuse(folder, now)
    ended = Event()
    renewing = Thread(target=_renew, args=(file, mine, ended), daemon=True)
    renewing.start()
    try:
        yield
    finally:
        ended.set()
        renewing.join()
        file.write(msgspec.structs.replace(mine, at=0.0))


def _refuse(folder: str, holder: Lease) -> None:
    found = f"run {holder.run_id}, which writes to it (process {holder.process} on {holder.host})"
    expected = f"a folder that no other run writes to; a run that was killed ends after {LEASE_SECONDS:.0f} s"
    raise InputError(folder, found, expected)


def _renew(file: "_File", mine: Lease, ended: Event) -> None:
    while not ended.wait(RENEW_SECONDS):
        file.write(msgspec.structs.replace(mine, at=time()))


def _lives(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True  # a process of somebody else
    return True


class _File:
    """The file of a lease, in any file system that Spark supports."""

    def __init__(self, spark: "SparkSession", folder: str) -> None:
        context: Any = spark.sparkContext
        self._io = context._jvm.org.apache.commons.io.IOUtils
        self._path = context._jvm.org.apache.hadoop.fs.Path(folder, NAME)
        self._files = self._path.getFileSystem(context._jsc.hadoopConfiguration())

    def exists(self) -> bool:
        return bool(self._files.exists(self._path))

    def read(self) -> Lease | None:
        """Return the lease, or None if it cannot be read."""
        stream = self._files.open(self._path)
        try:
            return msgspec.json.decode(bytes(self._io.toByteArray(stream)), type=Lease)
        except msgspec.DecodeError:
            return None
        finally:
            stream.close()

    def write(self, lease: Lease, *, new: bool = False) -> None:
        """Write the lease. A new file must not exist yet, so that one of two runs fails."""
        stream = self._files.create(self._path, not new)
        try:
            stream.write(bytearray(msgspec.json.encode(lease)))
        finally:
            stream.close()
