"""The lock of a folder: one run at a time writes to it."""

import os
import socket
import subprocess
import sys
from time import sleep, time

import msgspec
import pytest

from coordinator_core.errors import InputError
from rebalance_spark import files
from rebalance_spark.files import LOCK, STALE_SECONDS, Holder, StoredPath, locked

pytestmark = pytest.mark.slow


def left(folder, **changes):
    """The lock that another run left."""
    holder = msgspec.structs.replace(Holder("other", "elsewhere", 7, time()), **changes)
    (folder / LOCK).write_bytes(msgspec.json.encode(holder))


def free(spark, folder):
    """Whether a run can write to a folder."""
    try:
        with locked(spark, str(folder), "mine"):
            return True
    except InputError:
        return False


def test_a_second_run_is_refused_while_the_first_goes_on_also_if_it_fails(spark, tmp_path):
    first, second = (locked(spark, str(tmp_path), name) for name in ("first", "second"))
    with first, pytest.raises(InputError) as caught, second:
        pytest.fail("two runs")
    assert str(caught.value) == (
        f"{tmp_path}: found run first, which writes to it (process {os.getpid()} on {socket.gethostname()}),"
        " expected a folder that no other run writes to; a run that was killed ends after 60 s"
    )
    with pytest.raises(ZeroDivisionError), locked(spark, str(tmp_path), "third"):
        raise ZeroDivisionError
    assert list(tmp_path.iterdir()) == []
    assert free(spark, tmp_path)


def test_a_lock_ends_if_it_is_not_renewed_or_its_process_has_ended_or_it_cannot_be_read(spark, tmp_path):
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    left(tmp_path, at=time() - STALE_SECONDS / 2)
    assert not free(spark, tmp_path)
    left(tmp_path, at=time() - STALE_SECONDS - 1)
    assert free(spark, tmp_path)
    left(tmp_path, host=socket.gethostname(), process=ended.pid)
    assert free(spark, tmp_path)
    left(tmp_path, host=socket.gethostname(), process=1)
    assert not free(spark, tmp_path)
    (tmp_path / LOCK).write_text("{")
    assert free(spark, tmp_path)


def test_it_is_renewed_also_after_a_renewal_that_fails(spark, tmp_path, monkeypatch):
    """As on a disk that is full for some time: an exception in the thread would be a failure of the test."""
    write, tried = files._write, []

    def sometimes(file, mine, *, new=False):
        tried.append(mine.at)
        if 2 <= len(tried) <= 4:
            raise OSError(28, "No space left on device")
        write(file, mine, new=new)

    monkeypatch.setattr(files, "RENEW_SECONDS", 0.05)
    monkeypatch.setattr(files, "_write", sometimes)
    with locked(spark, str(tmp_path), "mine"):
        end = time() + 60
        while len(tried) < 6 and time() < end:
            sleep(0.01)
    assert len(tried) >= 6
    assert tried == sorted(tried)
    assert not (tmp_path / LOCK).exists()


def test_a_path_of_this_machine_is_one_of_python_too(spark, tmp_path):
    for name in (str(tmp_path / "a b"), (tmp_path / "a b").as_uri()):
        assert StoredPath(spark, name).local() == tmp_path / "a b"
    assert StoredPath(spark, "relative").local().name == "relative"
