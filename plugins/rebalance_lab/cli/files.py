"""Files that commands and notebooks write. Each is written by `write_whole`.

A file is written beside its place and moved when it is complete. A link stays, and its target is replaced.
What is not a regular file is written through: a FIFO, a character device such as /dev/null, an output of this
process such as /dev/stdout.
"""

import os
import re
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from errno import EACCES, EISDIR
from pathlib import Path
from secrets import token_hex
from stat import S_ISBLK, S_ISDIR, S_ISREG, S_ISSOCK

from coordinator_core.errors import InputError

_STDOUT, _STDERR = 1, 2
_DESCRIPTOR = re.compile(r"/(?:dev|proc/self)/fd/(\d+)")


def check_path(path: Path | None) -> None:
    """Check that a file can be written, before any long work is done. None stands for no file.

    Raises:
        InputError: if the path cannot be written to.
    """
    if path is not None and _descriptor(path) is None:
        with _reported(path):
            if is_written_through(path):
                _check_stream(path)
            else:
                with _unfinished(path):
                    pass


def write_whole(path: Path, data: bytes) -> None:
    """Write a file that appears under its name when it is complete.

    The mode of a file that exists is kept, and its owner where the process may do so.

    Raises:
        InputError: if the path cannot be written to.
        OSError: if the path is standard output, and that cannot be written to.
    """
    descriptor = _descriptor(path)
    if descriptor == _STDOUT:
        sys.stdout.flush()
        _write_through(descriptor, data)
        return
    with _reported(path):
        if descriptor is not None:
            _write_through(descriptor, data)
        elif is_written_through(path):
            _check_stream(path)
            _write_through(path, data)
        else:
            with _unfinished(path) as unfinished:
                unfinished.write_bytes(data)
                unfinished.replace(os.path.realpath(path))


def is_written_through(path: Path) -> bool:
    """Return whether a path is an output of this process, or neither a regular file nor a folder nor new."""
    if _descriptor(path) is not None:
        return True
    try:
        mode = path.stat().st_mode
    except OSError:
        return False
    return not (S_ISREG(mode) or S_ISDIR(mode))


def _check_stream(path: Path) -> None:
    """Check that something that is not a regular file can be written through."""
    mode = path.stat().st_mode
    if S_ISBLK(mode) or S_ISSOCK(mode):
        kind = "a block device" if S_ISBLK(mode) else "a socket"
        raise InputError(str(path), f"a path that cannot be written ({kind})", "a file")
    if not os.access(path, os.W_OK):
        raise _os_error(EACCES)


def _descriptor(path: Path) -> int | None:
    """Return the descriptor that a path stands for: standard output or error under any name, or /dev/fd/N.

    A regular file that is an output of this process is not replaced, because the process writes on into it.
    """
    named = _DESCRIPTOR.fullmatch(str(path))
    for number in (_STDOUT, _STDERR, *([int(named[1])] if named else [])):
        with suppress(OSError):
            if os.path.samestat(os.stat(path), os.fstat(number)):
                return number
    return None


def _write_through(place: Path | int, data: bytes) -> None:
    with open(place, "wb", closefd=isinstance(place, Path)) as stream:
        stream.write(data)


@contextmanager
def _unfinished(path: Path) -> Iterator[Path]:
    """Create an empty file beside a regular one, with its mode and owner, and remove what is left of it."""
    target = Path(os.path.realpath(path))
    unfinished = target.parent / f".rebalance-lab-{token_hex(8)}.part"
    try:
        before = path.stat()
    except FileNotFoundError:
        before = None
    if before is not None and S_ISDIR(before.st_mode):
        raise _os_error(EISDIR)
    os.close(os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666))
    try:
        if before is not None:
            os.close(os.open(target, os.O_WRONLY))  # a file that is protected is not replaced
            with suppress(OSError, AttributeError):  # of another user; no owners
                os.chown(unfinished, before.st_uid, before.st_gid)
            shutil.copymode(target, unfinished)
        yield unfinished
    finally:
        with suppress(OSError):
            unfinished.unlink()


@contextmanager
def _reported(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise InputError(str(path), f"a path that cannot be written ({error.strerror})", "a file") from None


def _os_error(number: int) -> OSError:
    return OSError(number, os.strerror(number))
