"""Files in any file system that Spark supports, and the lock of a folder.

A session of Spark Connect has no access to the file systems of its server: nothing is locked there.
"""

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Event, Thread
from time import time
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

import msgspec

from coordinator_core.errors import InputError
from rebalance_spark.sessions import context_of, is_local, spark_errors

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LOCK = "_lock.json"
"""Spark does not read files whose name begins with an underscore."""

STALE_SECONDS = 60.0
RENEW_SECONDS = 10.0


class StoredPath:
    """A path in the file system of its scheme, or in the default one."""

    def __init__(self, spark: "SparkSession", path: str, name: str | None = None) -> None:
        self._spark, self._context = spark, context_of(spark)
        path_of = self._context._jvm.org.apache.hadoop.fs.Path
        self._path = path_of(path) if name is None else path_of(path_of(path), name)
        self._files = self._path.getFileSystem(self._context._jsc.hadoopConfiguration())

    def exists(self) -> bool:
        """Return whether there is a file or a folder."""
        return bool(self._files.exists(self._path))

    def is_folder(self) -> bool:
        """Return whether there is a folder."""
        return self.exists() and bool(self._files.getFileStatus(self._path).isDirectory())

    def names(self) -> list[str]:
        """Return the names of the files and folders in a folder, sorted."""
        return sorted(status.getPath().getName() for status in self._files.listStatus(self._path))

    def local(self) -> Path | None:
        """Return the path if it is one of this machine, and all workers are processes of it."""
        uri = urlsplit(self._files.makeQualified(self._path).toString())
        return Path(unquote(uri.path)) if uri.scheme == "file" and is_local(self._spark) else None

    def read(self) -> bytes:
        """Return the content of a file."""
        stream = self._files.open(self._path)
        try:
            return bytes(self._context._jvm.org.apache.commons.io.IOUtils.toByteArray(stream))
        finally:
            stream.close()

    def write(self, content: bytes, *, new: bool = False) -> None:
        """Write a file. A new one must not exist yet, so that one of two processes fails."""
        stream = self._files.create(self._path, not new)
        try:
            stream.write(bytearray(content))
        finally:
            stream.close()

    def delete(self) -> None:
        """Delete a file."""
        self._files.delete(self._path, False)


class Holder(msgspec.Struct, frozen=True):
    """Who writes to a folder. ``at``: seconds since 1970 of the last renewal."""

    run_id: str
    host: str
    process: int
    at: float

    def holds(self, now: float) -> bool:
        """Return whether the run goes on. A process of this host that has ended does not."""
        if now - self.at > STALE_SECONDS:
            return False
        return self.host != socket.gethostname() or _lives(self.process)


@contextmanager
def locked(spark: "SparkSession", folder: str, run_id: str) -> Iterator[None]:
    """Hold the lock of a folder: a file in it, which is renewed while the run goes on. "" has none.

    Raises:
        InputError: if another run holds it, or if it is a file.
    """
    if context_of(spark) is None or not folder:
        yield
        return
    if (there := StoredPath(spark, folder)).exists() and not there.is_folder():
        raise InputError(folder, "a file", "a folder")
    file, ended = StoredPath(spark, folder, LOCK), Event()
    before = _holder(file)
    if before is not None and before.holds(time()):
        raise _refused(folder, before)
    mine = Holder(run_id, socket.gethostname(), os.getpid(), time())
    _write(file, mine, new=not file.exists())
    if (now := _holder(file)) is not None and now.run_id != run_id:
        raise _refused(folder, now)
    renewing = Thread(target=_renew, args=(file, mine, ended), daemon=True)
    renewing.start()
    try:
        yield
    finally:
        ended.set()
        renewing.join()
        with suppress(*spark_errors()):  # it becomes stale then
            file.delete()


def _refused(folder: str, holder: Holder) -> InputError:
    found = f"run {holder.run_id}, which writes to it (process {holder.process} on {holder.host})"
    expected = f"a folder that no other run writes to; a run that was killed ends after {STALE_SECONDS:.0f} s"
    return InputError(folder, found, expected)


def _renew(file: StoredPath, mine: Holder, ended: Event) -> None:
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


def _holder(file: StoredPath) -> Holder | None:
    """Return the holder in a file, or None if there is no file, or one that cannot be read."""
    with suppress(msgspec.DecodeError, *spark_errors()):
        return msgspec.json.decode(file.read(), type=Holder)
    return None


def _write(file: StoredPath, holder: Holder, *, new: bool = False) -> None:
    file.write(msgspec.json.encode(holder), new=new)
