"""Places that a file can be written to, and what every command and every notebook makes of each."""

import os
import stat
from collections.abc import Callable
from pathlib import Path
from threading import Thread

import pytest

NEW, FILE, LINK, NEW_LINK, FIFO, LINKED_FIFO, DEVICE = PLACES = (
    "new", "file", "link", "new link", "fifo", "linked fifo", "device",
)  # fmt: skip
MODE = 0o640


def check_written(write: Callable[[Path], object], path: Path, kind: str) -> bytes:
    """Make a place of a kind under a path, write to it, and return what was written; of a device, nothing.

    ``write`` writes to the path that it gets. Nothing else may stay, appear or change in the place's folder.
    """
    folder = path.parent
    elsewhere = folder / "elsewhere"
    elsewhere.mkdir(parents=True)
    target = elsewhere / path.name if "link" in kind else path
    if kind in (FILE, LINK):
        target.write_bytes(b"of an earlier run")
        target.chmod(MODE)
    elif "fifo" in kind:
        os.mkfifo(target)
    elif kind == DEVICE:
        make_device(target)
    if "link" in kind:
        path.symlink_to(Path("elsewhere", path.name))
    before = target.stat() if target.exists() else None
    received: list[bytes] = []
    reader = Thread(target=lambda: received.append(target.read_bytes()), daemon=True)
    if "fifo" in kind:
        reader.start()
    write(path)
    if "fifo" in kind:
        reader.join(60)
        assert received, "the FIFO was not written to"
    assert path.is_symlink() == ("link" in kind)
    after = target.stat()
    assert {path.name, "elsewhere"} == {p.name for p in folder.iterdir()}
    assert [p.name for p in elsewhere.iterdir()] == ([path.name] if "link" in kind else [])
    if before is not None:
        assert after.st_mode == before.st_mode
        assert (after.st_ino == before.st_ino) == (not stat.S_ISREG(after.st_mode))
    if kind == DEVICE:
        assert after.st_rdev == before.st_rdev
        return b""
    return received[0] if "fifo" in kind else target.read_bytes()


def make_device(path: Path, minor: int = 3) -> None:
    """Make a device of memory: a second /dev/null, or with 7 a second /dev/full. Skip the test if denied."""
    try:
        os.mknod(path, stat.S_IFCHR | 0o666, os.makedev(1, minor))
        path.open("wb").close()
    except OSError as error:
        path.unlink(missing_ok=True)
        pytest.skip(f"no device in a folder of tests: {error.strerror}")
