"""Files in any file system that Spark supports, and jobs with a description in Spark's own pages.

A session of Spark Connect has no access to the file systems of its server.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def context_of(spark: "SparkSession") -> Any:
    """Return the context of a session, or None for a session of Spark Connect."""
    return getattr(spark, "_sc", None)


@contextmanager
def described(spark: "SparkSession", text: str) -> Iterator[None]:
    """Give the jobs that this thread starts within the context a description."""
    context = context_of(spark)
    if context is None:
        yield
        return
    context.setJobDescription(f"rebalance-lab: {text}")
    try:
        yield
    finally:
        context.setJobDescription(None)


class StoredPath:
    """A path in the file system of its scheme, or in the default one."""

    def __init__(self, spark: "SparkSession", path: str, name: str | None = None) -> None:
        context = context_of(spark)
        self._path_of = context._jvm.org.apache.hadoop.fs.Path
        self._path = self._path_of(path)
        if name is not None:
            self._path = self._path_of(self._path, name)
        self._io = context._jvm.org.apache.commons.io.IOUtils
        self._files = self._path.getFileSystem(context._jsc.hadoopConfiguration())

    def exists(self) -> bool:
        """Return whether there is a file or a folder."""
        return bool(self._files.exists(self._path))

    def is_folder(self) -> bool:
        """Return whether there is a folder."""
        return self.exists() and bool(self._files.getFileStatus(self._path).isDirectory())

    def names(self) -> list[str]:
        """Return the names of the files and folders in a folder, sorted."""
        return sorted(status.getPath().getName() for status in self._files.listStatus(self._path))

    def read(self) -> bytes:
        """Return the content of a file."""
        stream = self._files.open(self._path)
        try:
            return bytes(self._io.toByteArray(stream))
        finally:
            stream.close()

    def set_aside(self) -> str:
        """Give a file a name that readers of Parquet pass over, in its folder, and return it; "" if not."""
        name = f"_unreadable-{self._path.getName()}"
        return name if self._files.rename(self._path, self._path_of(self._path.getParent(), name)) else ""

    def write(self, content: bytes, *, new: bool = False) -> None:
        """Write a file. A new one must not exist yet, so that one of two processes fails."""
        stream = self._files.create(self._path, not new)
        try:
            stream.write(bytearray(content))
        finally:
            stream.close()
