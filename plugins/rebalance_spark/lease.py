"""One run at a time writes to a folder: a file in it says which, and is renewed while the run goes on.

The file is in the folder of the scores, in whatever file system that is. Nothing is deleted: a run that ends
says so in the file. A run that was killed cannot say so. Its lease ends `LEASE_SECONDS` after the last
renewal, or at once for a run of this machine whose process has ended.
"""

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from threading import Event, Thread
from time import time
from typing import TYPE_CHECKING

import msgspec

from coordinator_core.errors import InputError
from rebalance_spark.sessions import spark_errors
from rebalance_spark.storage import StoredPath

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
    file = StoredPath(spark, folder, NAME)
    mine = Lease(run_id, socket.gethostname(), os.getpid(), time())
    is_new = not file.exists()
    before = None if is_new else _read(file)
    if before is not None and before.holds(time()):
        _refuse(folder, before)
    _write(file, mine, new=is_new)
    now = _read(file)
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
        with suppress(*spark_errors(), OSError):  # it ends by itself then
            _write(file, msgspec.structs.replace(mine, at=0.0))


def _refuse(folder: str, holder: Lease) -> None:
    found = f"run {holder.run_id}, which writes to it (process {holder.process} on {holder.host})"
    expected = f"a folder that no other run writes to; a run that was killed ends after {LEASE_SECONDS:.0f} s"
    raise InputError(folder, found, expected)


def _renew(file: StoredPath, mine: Lease, ended: Event) -> None:
    while not ended.wait(RENEW_SECONDS):
        with suppress(*spark_errors(), OSError):  # a full disk may have room again at the next time
            _write(file, msgspec.structs.replace(mine, at=time()))


def _lives(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True  # a process of somebody else
    return True


def _read(file: StoredPath) -> Lease | None:
    """Return the lease in a file, or None if it cannot be read."""
    try:
        return msgspec.json.decode(file.read(), type=Lease)
    except msgspec.DecodeError:
        return None


def _write(file: StoredPath, lease: Lease, *, new: bool = False) -> None:
    file.write(msgspec.json.encode(lease), new=new)
