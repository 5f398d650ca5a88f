"""Files that commands write: what stays of the place, and that one module writes all of them."""

import ast
import os
import re
import socket
import subprocess
from pathlib import Path
from stat import S_IMODE, S_ISBLK
from subprocess import PIPE
from tempfile import TemporaryDirectory

import pytest

from coordinator_core.errors import InputError
from rebalance_lab.cli.files import check_path, is_written_through, write_whole
from tests.places import ROOT
from tests.rebalance_lab.cli.commands import COMMAND, environment, the_error
from tests.written import DEVICE, PLACES, check_written, make_device


@pytest.mark.parametrize("kind", PLACES)
@pytest.mark.parametrize("verb", ["simulate", "compare"])
def test_a_command_leaves_its_place_what_it_is(lab, small, tmp_path, verb, kind):
    def write(path):
        place = path.parent if verb == "compare" else path
        answer = lab(verb, small, "-s", "range", "--seed", "4", "--trace", place)
        assert (answer.status, answer.err) == (0, "")

    written = check_written(write, tmp_path / "place" / "small.range.jsonl", kind)
    assert kind == DEVICE or written[:1] == b"{"


@pytest.mark.parametrize("kind", PLACES)
def test_what_is_written_is_what_is_there(tmp_path, kind):
    written = check_written(lambda path: write_whole(path, b"whole"), tmp_path / "place" / "x", kind)
    assert kind == DEVICE or written == b"whole"


@pytest.mark.parametrize("kind", PLACES)
def test_a_place_is_checked_without_a_trace(tmp_path, kind):
    """A FIFO is not even opened, or the check would wait for a reader."""

    def write(path):
        check_path(path)
        write_whole(path, b"whole")

    check_written(write, tmp_path / "place" / "x", kind)


def test_a_new_file_has_the_mode_of_every_new_file(tmp_path):
    (tmp_path / "other").touch()
    write_whole(tmp_path / "new", b"")
    assert S_IMODE((tmp_path / "new").stat().st_mode) == S_IMODE((tmp_path / "other").stat().st_mode)


def test_a_neighbour_with_the_ending_part_stays(tmp_path):
    (tmp_path / "x.part").write_bytes(b"mine")
    write_whole(tmp_path / "x", b"")
    assert (tmp_path / "x.part").read_bytes() == b"mine"


@pytest.fixture
def nobody():
    """A folder for everybody, in a process without the rights of root."""
    with TemporaryDirectory() as name:
        os.chmod(name, 0o777)
        is_root = os.geteuid() == 0
        if is_root:
            os.seteuid(65534)
        yield name
        if is_root:
            os.seteuid(0)


@pytest.mark.parametrize("write", [check_path, lambda path: write_whole(path, b"new")])
def test_a_file_that_is_protected_is_not_replaced(nobody, write):
    path = Path(nobody, "protected")
    path.write_bytes(b"mine")
    path.chmod(0o444)
    with pytest.raises(InputError, match=r"a path that cannot be written \(Permission denied\)"):
        write(path)
    assert [p.name for p in path.parent.iterdir()] == ["protected"]
    assert path.read_bytes() == b"mine"


@pytest.mark.parametrize("write", [check_path, lambda path: write_whole(path, b"new")])
def test_a_socket_and_a_block_device_are_refused(tmp_path, monkeypatch, write):
    """What is written to a disk under its name would be its end."""
    monkeypatch.chdir(tmp_path)  # names of sockets are short
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind("socket")
        with pytest.raises(InputError, match=r"\(a socket\), expected a file"):
            write(tmp_path / "socket")
    monkeypatch.setattr("rebalance_lab.cli.files.S_ISBLK", lambda mode: not S_ISBLK(mode))
    os.mkfifo(tmp_path / "disk")
    with pytest.raises(InputError, match=r"\(a block device\), expected a file"):
        write(tmp_path / "disk")


def in_a_shell(script, *arguments, **more):
    shell = ["sh", "-c", script, "sh", *COMMAND, *map(str, arguments)]
    return subprocess.run(shell, env=environment(), check=False, timeout=60, **more)


@pytest.mark.parametrize(
    "linked_to", ["/dev/stdout", pytest.param("/proc/self/fd/1", marks=pytest.mark.slow)]
)
def test_standard_output_has_the_trace_before_the_rest(small, tmp_path, linked_to):
    """Also where it is a file, which must not be replaced under its name."""
    (tmp_path / "link").symlink_to(linked_to)
    script = f'echo before >{tmp_path / "out"}; "$@" >>{tmp_path / "out"}'
    assert in_a_shell(script, "simulate", small, "--trace", tmp_path / "link").returncode == 0
    lines = (tmp_path / "out").read_bytes().splitlines()
    assert lines[0] == b"before"
    assert lines[1].startswith(b'{"at_ms":0,')
    assert lines[-1].startswith(b"ended Stable")


@pytest.mark.slow
def test_a_descriptor_of_the_shell_is_written_through(small, tmp_path):
    script = '{ echo before >&3; "$@" >/dev/null; echo after >&3; } 3>>' + str(tmp_path / "out")
    assert in_a_shell(script, "simulate", small, "--trace", "/dev/fd/3").returncode == 0
    lines = (tmp_path / "out").read_bytes().splitlines()
    assert (lines[0], lines[-1]) == (b"before", b"after")
    assert lines[1].startswith(b'{"at_ms":0,')


@pytest.mark.slow
def test_a_standard_output_that_nobody_reads_ends_the_command_without_a_word(small, tmp_path):
    (tmp_path / "link").symlink_to("/dev/stdout")
    reader, writer = os.pipe()
    os.close(reader)
    done = in_a_shell('"$@"', "simulate", small, "--trace", tmp_path / "link", stdout=writer, stderr=PIPE)
    os.close(writer)
    assert (done.returncode, done.stderr) == (1, b"")


def test_a_device_without_room_is_one_error(lab, small, tmp_path):
    make_device(tmp_path / "full", 7)
    error = the_error(lab("simulate", small, "--trace", tmp_path / "full"))
    assert error.endswith("found a path that cannot be written (No space left on device), expected a file")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["full", "small.yaml"]


@pytest.mark.parametrize(("name", "through"), [("/dev/null", True), ("folder", False), ("none", False)])
def test_what_is_neither_a_file_nor_a_folder_is_written_through(tmp_path, name, through):
    (tmp_path / "folder").mkdir()
    assert is_written_through(tmp_path / name) is through


ELSEWHERE = {
    "plugins/rebalance_lab/cli/files.py",
    "plugins/rebalance_lab/cli/main.py",  # /dev/null in place of a closed output
    "plugins/rebalance_conformance/commands/new_assignor.py",  # a folder that is moved when it is whole
    "plugins/rebalance_conformance/remote.py",  # pipes
    "plugins/rebalance_conformance/watched.py",
    "plugins/rebalance_spark/java.py",  # in temporary folders
    "plugins/rebalance_spark/shipping.py",
    "plugins/rebalance_spark/sources.py",
}
"""Modules that write what is not a file that somebody has named."""


def writes(path):
    """Whether a module calls what writes a file."""
    text = path.read_text()
    if not re.search(r"open\(|write_|touch|NamedTemporaryFile", text):
        return False
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Call):
            name = getattr(node.func, "attr", getattr(node.func, "id", ""))
            modes = [
                n.value for n in ast.walk(node) if isinstance(n, ast.Constant) and isinstance(n.value, str)
            ]
            opens = name == "open" and any(re.fullmatch("[wax]b?(:gz)?", mode) for mode in modes)
            if opens or name in ("write_text", "write_bytes", "touch", "fdopen", "NamedTemporaryFile"):
                return True
    return False


def test_one_module_writes_all_files():
    modules = [p for top in ("assignors", "coordinator_core", "plugins") for p in (ROOT / top).rglob("*.py")]
    assert {str(path.relative_to(ROOT)) for path in modules if writes(path)} == ELSEWHERE
