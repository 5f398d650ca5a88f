"""One run at a time writes to a folder."""

import os
import socket
import subprocess
import sys
from time import sleep, time

import msgspec
import pytest

from coordinator_core.errors import InputError
from rebalance_spark import lease
from rebalance_spark.lease import LEASE_SECONDS, NAME, Lease, leased

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def ended():
    """The number of a process that has ended."""
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


def left(folder, **changes):
    """A lease that another run left."""
    other = Lease("other", "elsewhere", 7, time())
    (folder / NAME).write_bytes(msgspec.json.encode(msgspec.structs.replace(other, **changes)))


def test_a_second_run_is_refused_while_the_first_goes_on(spark, tmp_path):
    with leased(spark, str(tmp_path), "first"):
        with pytest.raises(InputError) as caught, leased(spark, str(tmp_path), "second"):
            pytest.fail("two runs")
        assert str(caught.value) == (
            f"{tmp_path}: found run first, which writes to it (process {os.getpid()} on"
            f" {socket.gethostname()}), expected a folder that no other run writes to; a run that was killed"
            " ends after 60 s"
        )
    with leased(spark, str(tmp_path), "third"):
        pass


def test_a_run_that_fails_gives_the_lease_back(spark, tmp_path):
    with pytest.raises(ZeroDivisionError), leased(spark, str(tmp_path), "first"):
        raise ZeroDivisionError
    with leased(spark, str(tmp_path), "second"):
        pass


def test_the_lease_of_a_run_elsewhere_ends_if_it_is_not_renewed(spark, tmp_path):
    left(tmp_path, at=time() - LEASE_SECONDS / 2)
    with pytest.raises(InputError), leased(spark, str(tmp_path), "mine"):
        pytest.fail("two runs")
    left(tmp_path, at=time() - LEASE_SECONDS - 1)
    with leased(spark, str(tmp_path), "mine"):
        pass


def test_a_process_of_this_machine_that_has_ended_holds_nothing(spark, tmp_path, ended):
    left(tmp_path, host=socket.gethostname(), process=ended)
    with leased(spark, str(tmp_path), "mine"):
        pass


def test_a_lease_that_cannot_be_read_holds_nothing(spark, tmp_path):
    (tmp_path / NAME).write_text("{")
    with leased(spark, str(tmp_path), "mine"):
        pass


def test_it_is_renewed_while_the_run_goes_on(spark, tmp_path, monkeypatch):
    monkeypatch.setattr(lease, "RENEW_SECONDS", 0.05)
    with leased(spark, str(tmp_path), "mine"):
        first = msgspec.json.decode((tmp_path / NAME).read_bytes(), type=Lease).at
        until = time() + 60
        while time() < until:
            try:
                if msgspec.json.decode((tmp_path / NAME).read_bytes(), type=Lease).at > first:
                    return
            except msgspec.DecodeError:
                continue  # just being written
    pytest.fail("never renewed")


def test_a_renewal_that_fails_is_tried_again(spark, tmp_path, monkeypatch):
    """As on a disk that is full for some time: an exception in the thread would be a failure of the test."""
    monkeypatch.setattr(lease, "RENEW_SECONDS", 0.05)
    write, tried = lease._write, []

    def sometimes(file, mine, *, new=False):
        tried.append(mine.at)
        if 2 <= len(tried) <= 4:
            raise OSError(28, "No space left on device")
        write(file, mine, new=new)

    monkeypatch.setattr(lease, "_write", sometimes)
    with leased(spark, str(tmp_path), "first"):
        until = time() + 60
        while len(tried) < 6 and time() < until:
            sleep(0.01)
    assert len(tried) >= 6
    assert msgspec.json.decode((tmp_path / NAME).read_bytes(), type=Lease).at == 0
