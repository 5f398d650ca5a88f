"""The command as a process: plugins that exit, outputs, encodings, Ctrl-C, and the options of all commands.

Tests that start processes are slow.
"""

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

from rebalance_lab.cli.app import no_interrupt_lost
from tests.places import ROOT, SCENARIOS
from tests.rebalance_lab.cli.commands import COMMAND, PATHS, environment, in_a_process, the_error

LEAVE = str(SCENARIOS / "leave.yaml")

BUILT_IN = "_datetime" in sys.builtin_module_names

RUDE = "import sys\n\nsys.exit('I leave')\n"


@pytest.fixture
def rude(tmp_path):
    """The environment of a process in which a plugin is installed whose module calls sys.exit."""
    (tmp_path / "rude.py").write_text(RUDE)
    metadata = tmp_path / "rude_plugin-1.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: rude-plugin\nVersion: 1\n")
    (metadata / "entry_points.txt").write_text("[rebalance_lab]\nrude = rude\n")
    return {"PYTHONPATH": os.pathsep.join((PATHS, str(tmp_path)))}


@pytest.mark.slow
def test_a_plugin_that_exits_is_one_warning_and_can_be_switched_off(rude):
    done = in_a_process("simulate", LEAVE, "-s", "range", env=rude)
    assert done.returncode == 0
    assert done.stdout.startswith(b"leave under range, seed 0\n")
    (line,) = done.stderr.decode().splitlines()
    assert line.startswith("warning: plugin 'rude' of rude-plugin is not available: cannot be imported")
    assert line.endswith("rude.py:3)")
    assert "SystemExit: I leave" in line

    without = in_a_process("simulate", LEAVE, "-s", "range", "--no-plugin", "rude", env=rude)
    assert (without.returncode, without.stdout, without.stderr) == (0, done.stdout, b"")
    by_variable = in_a_process("plugins", env={**rude, "REBALANCE_LAB_NO_PLUGIN": "rude, spark"})
    assert (by_variable.returncode, by_variable.stderr) == (0, b"")
    assert by_variable.stdout.decode().splitlines()[-1] == "switched off: spark, rude"


def test_an_unknown_plugin_cannot_be_switched_off(lab, monkeypatch):
    monkeypatch.setenv("REBALANCE_LAB_NO_PLUGIN", "")  # restored after the test
    error = the_error(lab("plugins", "--no-plugin=sprk"))
    assert error.startswith("--no-plugin: found 'sprk', expected one of ")
    assert error.endswith(" names (did you mean 'spark'?)")


MINE = "def mine(cluster, group):\n    return group['x']\n"


@pytest.mark.parametrize("command", [f"simulate {LEAVE}", f"compare {LEAVE} -j 1", "assign"])
def test_the_traceback_of_an_author_is_printed_on_demand(lab, tmp_path, monkeypatch, command):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(MINE)
    group = b'{"topics": {"t": {"partitions": 1}}, "members": [{"id": "a", "topics": ["t"]}]}'
    short, long = (
        lab(*command.split(), "-s", "mine.py:mine", *more, stdin=group) for more in ((), ("--traceback",))
    )
    (line,) = short.err.splitlines()
    assert "raised KeyError: 'x' (mine.py:2)" in f"{line}{short.out}"
    lines = [each for each in long.err.splitlines() if each != line]
    assert (lines[0], lines[-1]) == ("Traceback (most recent call last):", "KeyError: 'x'")
    assert 'mine.py", line 2, in mine' in lines[1]


def test_the_version(lab):
    answer = lab("--version")
    assert (answer.status, answer.err) == (0, "")
    assert answer.out.startswith("rebalance-lab")
    assert len(answer.out.splitlines()) == 1


@pytest.mark.slow
def test_verbose_reports_plugins_on_stderr():
    done = in_a_process("simulate", LEAVE, "-s", "range", "-v")
    assert done.returncode == 0
    assert done.stdout.startswith(b"leave under range, seed 0\n")
    lines = done.stderr.decode().splitlines()
    assert all(" ms  " in line for line in lines)
    assert any(line.endswith("command simulate has ended") for line in lines)
    assert any("plugin assignors of rebalance-lab" in line for line in lines)


@pytest.mark.parametrize(
    ("words", "number", "completed"),
    [
        ("rebalance-lab sim", 1, ["simulate"]),
        ("rebalance-lab --no", 1, ["--no-plugin"]),
        ("rebalance-lab simulate x.yaml --strategy coop", 4, ["cooperative-sticky"]),
        ("rebalance-lab compare x.yaml -s range -s optimal+ti", 6, ["optimal+time_limit"]),
        ("rebalance-lab compare x.yaml -s lag-aware+static+to", 4, ["lag-aware+static+tolerance"]),
    ],
)
def test_a_shell_completes_commands_options_and_strategies(lab, monkeypatch, words, number, completed):
    monkeypatch.setenv("_REBALANCE_LAB_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", words)
    monkeypatch.setenv("COMP_CWORD", str(number))
    answer = lab()
    assert (answer.status, answer.out.split()) == (0, completed)


@pytest.mark.slow
@pytest.mark.parametrize("arguments", [["simulate", LEAVE], ["plugins", "--format", "json"]])
def test_a_full_disk_is_one_line_and_a_status(arguments):
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            [*COMMAND, *arguments], stdout=full, stderr=subprocess.PIPE, env=environment(), check=False
        )
    assert done.stderr == b"error: output cannot be written (No space left on device)\n"
    assert done.returncode == 1


def test_a_closed_output_is_one_line_and_a_status():
    shell = ["sh", "-c", '"$@" >&-', "sh", *COMMAND, "plugins"]
    done = subprocess.run(shell, stderr=subprocess.PIPE, env=environment(), check=False)
    assert (done.returncode, done.stderr) == (2, b"error: standard output is closed\n")


@pytest.mark.slow
@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "cp1252"])
def test_an_encoding_without_the_characters_of_the_output(encoding, tmp_path):
    """Text has escapes in place of them, and documents for programs are in UTF-8."""
    path = tmp_path / "small.yaml"
    path.write_text(
        "name: Größe ✓\nduration: 20s\ntopics: {t: {partitions: 1}}\nmembers: [{id: Ω, topics: [t]}]\n",
        encoding="utf-8",
    )
    env = {"PYTHONIOENCODING": encoding}
    text = in_a_process("simulate", path, env=env)
    assert (text.returncode, text.stderr) == (0, b"")
    expected = b"Gr\\xf6\\xdfe \\u2713" if encoding == "ascii" else "Größe \\u2713".encode(encoding)
    assert text.stdout.startswith(expected)
    document = in_a_process("simulate", path, "--format", "json", env=env)
    assert (document.returncode, document.stderr) == (0, b"")
    assert "Ω" in json.loads(document.stdout)[0]["members"]


WITHOUT_EXTRAS = """
import sys
import tomllib

for module in ("hypothesis", "kio", "pandas", "pyarrow", "pyspark"):
    sys.modules[module] = None  # as if it was not installed

from rebalance_lab.cli import extras
from rebalance_lab.cli.app import call

with open("pyproject.toml", "rb") as file:
    listed = tomllib.load(file)["project"]["optional-dependencies"]
lines = [f"{line.split(';')[0]}; extra == '{extra}'" for extra, named in listed.items() for line in named]
extras.requires = lambda _: lines
for command in sys.argv[1:]:
    print(call(command.split()))
"""


@pytest.mark.slow
def test_each_command_without_its_extra_is_one_line(tmp_path):
    """It runs a process in which the modules are missing: here they have been imported."""
    (tmp_path / "in.jsonl").write_text('{"scenario_id": "a"}')
    commands = {
        "serve": "kafka",
        "consume --bootstrap-server localhost:1 --group g --topic t": "kafka",
        "snapshot --bootstrap-server localhost:1 --group g": "kafka",
        f"generate --profile skewed --rows 2 --out {tmp_path}/out": "spark",
        f"score {tmp_path}/in.jsonl -s range --out {tmp_path}/scores": "spark",
        f"report {tmp_path}": "spark",
        "check range": "conformance",
    }
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_EXTRAS, *commands],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env=environment(),
        check=True,
    )
    assert done.stdout.split() == ["2"] * len(commands)
    for line, (command, extra) in zip(done.stderr.splitlines(), commands.items(), strict=True):
        assert line.startswith(
            (f"error: {command.split()[0]}: found no module ", "error: Spark: found no PySpark")
        )
        assert line.endswith(f': pip install "rebalance-lab[{extra}]"')


@pytest.mark.slow
def test_the_signs_of_checks_in_ascii():
    """It takes long, because some checks start processes."""
    done = in_a_process("check", "range", "--examples", "1", env={"PYTHONIOENCODING": "ascii"})
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.decode("ascii").splitlines()[1].startswith("+  raises ")


def interrupted(arguments, ready):
    """The status and the errors of a process that gets Ctrl-C, as its children do, when it is ready."""
    with subprocess.Popen(
        [*COMMAND, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(),
        start_new_session=True,
    ) as process:
        try:
            late = time.monotonic() + 60
            while not ready(process.pid):
                assert process.poll() is None, process.stderr.read()
                assert time.monotonic() < late, "it is never ready for the interrupt"
                time.sleep(0.01)
            os.killpg(process.pid, signal.SIGINT)
            _, err = process.communicate(timeout=60)
        except (AssertionError, subprocess.TimeoutExpired):
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            raise
    return process.returncode, err


def read(path):
    """A file of a process; nothing of one that has ended."""
    with suppress(OSError):
        return path.read_text()
    return ""


def children(pid):
    """The processes that any thread of a process has started."""
    return " ".join(map(read, Path(f"/proc/{pid}/task").glob("*/children"))).split()


def libraries(pid):
    return read(Path(f"/proc/{pid}/maps"))


@pytest.fixture
def endless(tmp_path):
    """A scenario whose run, with every message, is ended by the interrupt alone, however late that is."""
    path = tmp_path / "endless.yaml"
    path.write_text(
        "name: endless\nduration: 100000h\ntopics: {t: {partitions: 1}}\nmembers: [{id: c, topics: [t]}]\n"
    )
    return path


@pytest.mark.slow
@pytest.mark.parametrize(
    "library",
    [
        pytest.param("/_datetime.", marks=pytest.mark.skipif(BUILT_IN, reason="it is part of this Python")),
        "/_multiarray_umath.",
        "/msgspec/_core.",
        "/_yaml.",
    ],
)
def test_an_interrupt_during_the_imports_has_no_traceback(library, endless):
    """The libraries are in the order in which the command imports them, after its first module."""
    arguments = ["simulate", str(endless), "--every-message"]
    status, err = interrupted(arguments, lambda pid: library in libraries(pid))
    assert (status, err) == (130, b"")


def cleared():
    """Interrupted as a compiled module is that clears errors."""
    with suppress(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)


def in_the_creation_of_a_class():
    """Interrupted as Python is in ``__set_name__``."""
    try:
        signal.raise_signal(signal.SIGINT)
    except KeyboardInterrupt as interrupt:
        raise RuntimeError("Error calling __set_name__") from interrupt


@pytest.mark.parametrize("interrupted", [cleared, in_the_creation_of_a_class])
def test_an_interrupt_that_an_import_loses_is_raised_after_it(interrupted):
    with pytest.raises(KeyboardInterrupt), no_interrupt_lost():
        interrupted()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    with no_interrupt_lost():
        pass


@pytest.mark.slow
@pytest.mark.parametrize("extra", [0.0, 0.3, 1.0])
def test_an_interrupt_during_a_comparison_ends_its_processes(extra):
    """The children get it, too: while they import the program, and while they run a strategy."""
    began = []

    def ready(pid):
        if len(children(pid)) >= 3:  # two workers, and the process that tracks their resources
            began.append(time.monotonic())
        return began and time.monotonic() - began[0] >= extra

    strategies = ["-s", "range", "-s", "sticky", "-s", "optimal", "--seeds", "9", "-j", "3"]
    status, err = interrupted(["compare", str(SCENARIOS / "rolling-deploy.yaml"), *strategies], ready)
    assert (status, err) == (130, b"")


def has_java(pid):
    return bool(children(pid))


def has_workers(pid):
    of_java = [child for java in children(pid) for child in children(java)]
    return any("pyspark.daemon" in read(Path(f"/proc/{child}/cmdline")) for child in of_java)


@pytest.mark.slow
@pytest.mark.parametrize("ready", [has_java, has_workers])
def test_an_interrupt_during_a_command_on_spark_ends_java(ready, tmp_path):
    """While Java starts, and while its workers generate scenarios. Java may log what it aborts."""
    arguments = ["generate", "--profile", "churny", "--rows", "2000000", "--out", str(tmp_path / "out")]
    status, err = interrupted(arguments, ready)
    assert status == 130
    assert b"Traceback" not in err


@pytest.mark.slow
def test_an_interrupt_during_checks_ends_them():
    status, err = interrupted(["check", "sticky"], lambda pid: len(children(pid)) >= 2)
    assert (status, err) == (130, b"")
