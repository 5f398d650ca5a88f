"""Subcommands of plugins: they run and are listed like those that are built in, and take nobody's name."""

import json
import subprocess
import sys
from importlib import import_module
from typing import Annotated

import pytest
import typer
from typer.testing import CliRunner

from coordinator_core.errors import InputError, PluginError
from coordinator_core.registry.hookspecs import CommandSpec, hookimpl
from coordinator_core.registry.registry import Registry, default_registry, registry_of_commands
from rebalance_lab.cli import app
from rebalance_lab.cli import plugins as plugins_module
from rebalance_lab.cli.app import command_line
from tests.rebalance_lab.cli.commands import environment


def greet(
    name: Annotated[str, typer.Argument(metavar="WHOM")],
    times: Annotated[int, typer.Option(min=1, help="How often.")] = 1,
) -> None:
    """Greet somebody who is there.

    In a paragraph of its own.
    """
    typer.echo(f"hello {name}\n" * times, nl=False)


def refuse() -> None:
    """Refuse whatever comes."""
    raise InputError("a [place]", "this", "that")


def compare() -> None:
    """Take the place of another."""
    raise AssertionError("nobody should call this")


def plugin_with(*specs):
    return type("Plugin", (), {"commands": hookimpl(lambda self: specs)})()


@pytest.fixture
def registry(monkeypatch):
    """The commands above, and one that has the name of another."""
    made = Registry()
    specs = [
        CommandSpec("greet", greet, "Greets somebody."),
        CommandSpec("refuse", refuse),
        CommandSpec("compare", compare, "Another compare."),
    ]
    made.register(plugin_with(*specs), name="polite", distribution="polite-dist", version="3")
    for module in (app, plugins_module):
        monkeypatch.setattr(module, "default_registry", lambda: made)
    monkeypatch.setattr(app, "registry_of_commands", lambda _: made)
    return made


WARNING = "warning: the command 'compare' of a plugin is not available: rebalance-lab has one itself"


def test_a_command_of_a_plugin_runs_with_its_arguments_and_options(lab, registry):
    answer = lab("greet", "world", "--times", "2")
    assert (answer.status, answer.out) == (0, "hello world\nhello world\n")


def test_a_command_of_a_plugin_is_in_the_help_by_the_first_line_of_its_docstring(lab, registry):
    answer = lab("--help")
    assert answer.status == 0
    (line,) = (line for line in answer.out.splitlines() if " greet " in line)
    assert "Greet somebody who is there." in line
    assert " simulate " in answer.out


@pytest.mark.parametrize("option", ["-h", "--help"])
def test_a_command_of_a_plugin_has_help_of_its_own(lab, registry, option):
    words = ("rebalance-lab greet", "WHOM", "How often.", "In a paragraph of its own.")
    assert [word for word in words if word not in lab("greet", option).out] == []


@pytest.mark.parametrize("arguments", [["greet"], ["greet", "a", "--times", "0"], ["greet", "a", "--nope"]])
def test_wrong_options_of_a_command_of_a_plugin_end_with_status_2(lab, registry, arguments):
    answer = lab(*arguments)
    assert (answer.status, answer.out) == (2, "")


def test_an_error_of_ours_in_a_command_of_a_plugin_is_one_line(lab, registry):
    answer = lab("refuse")
    assert (answer.status, answer.out) == (2, "")
    assert answer.err.splitlines() == [WARNING, "error: a [place]: found this, expected that"]


def test_a_name_that_is_taken_is_left_out_with_a_warning_and_ours_is_called(lab, registry, small):
    answer = lab("compare", small, "-s", "nobody")
    assert answer.err.splitlines()[0] == WARNING
    assert "found 'nobody'" in answer.err
    assert "Take the place of another." not in lab("--help").out


def test_plugins_lists_commands(lab, registry):
    out = lab("plugins").out
    assert "commands from polite-dist 3 (Plugin)" in out
    assert "  greet    Greets somebody." in out
    (plugin,) = json.loads(lab("plugins", "--format", "json").out)["plugins"]
    assert plugin["contributes"]["commands"]["greet"] == "Greets somebody."


def test_the_commands_of_a_registry_are_those_of_that_registry(registry):
    runner = CliRunner()
    assert runner.invoke(command_line(registry), ["greet", "you"]).stdout == "hello you\n"
    assert runner.invoke(command_line(Registry()), ["greet", "you"]).exit_code == 2


def test_a_reference_is_imported_when_its_command_runs_or_describes_itself(lab, registry, monkeypatch):
    imported = []
    monkeypatch.setattr(app, "import_module", lambda name: imported.append(name) or import_module(name))
    registry.register(plugin_with(CommandSpec("salute", f"{__name__}:greet", "Salute.")), name="second")
    listed = lab("--help").out
    assert [line.split(maxsplit=1)[1] for line in listed.splitlines() if " salute " in line] == ["Salute."]
    assert imported == []
    assert "In a paragraph of its own." in lab("salute", "-h").out
    assert imported == [__name__]
    answer = lab("salute", "world", "--times", "2")
    assert (answer.status, answer.out) == (0, "hello world\nhello world\n")
    assert lab("salute", "a", "--nope").status == 2


def test_a_reference_whose_module_needs_an_extra_names_the_extra(lab, registry, monkeypatch):
    monkeypatch.setattr(app, "extra_of", {"no_such_module": "kafka"}.get)
    registry.register(plugin_with(CommandSpec("salute", "no_such_module:greet")), name="second")
    expected = 'it installed: pip install "rebalance-lab[kafka]"'
    _, error = lab("salute").err.splitlines()
    assert error == f"error: salute: found no module no_such_module, expected {expected}"


@pytest.mark.parametrize("reference", ["no_such_module:greet", f"{__name__}:nobody", "greet"])
def test_a_reference_to_nothing_is_an_error_of_its_plugin(lab, registry, reference):
    registry.register(plugin_with(CommandSpec("salute", reference)), name="second")
    assert lab("--help").status == 0
    answer = lab("salute")
    assert (answer.status, answer.out) == (2, "")
    assert answer.err.splitlines()[1].startswith("error: plugin 'second', command 'salute': ")


def test_every_reference_of_ours_is_a_function_and_its_description_fits_the_list(lab):
    specs = [*app._BUILT_IN.values(), *default_registry().commands().values()]
    references = [spec.function for spec in specs if isinstance(spec.function, str)]
    assert len(references) == len(specs)
    for reference in references:
        module, _, name = reference.partition(":")
        assert callable(getattr(import_module(module), name))
    listed = lab("--help").out.partition("Commands:")[2]
    assert all(spec.doc and spec.doc in listed for spec in specs)


def test_the_list_of_commands_leaves_out_no_plugin_with_commands():
    """The packages of the core are not loaded for the list."""
    assert registry_of_commands(()).commands() == default_registry().commands()


def test_a_name_of_two_words_is_refused(registry):
    with pytest.raises(PluginError, match="is not lower-case words"):
        registry.register(plugin_with(CommandSpec("Two Words", greet)), name="second")


def test_no_plugin_of_ours_needs_the_registry_to_be_there_already():
    """Whoever loads the plugins first has the same ones as whoever comes after."""
    program = (
        "from importlib.metadata import entry_points\n"
        "from coordinator_core.registry.registry import Registry, default_registry\n"
        "first = Registry()\n"
        "first.load(entry_points(group='rebalance_lab'))\n"
        "then = default_registry()\n"
        "assert first.failures == then.failures\n"
        "assert [p.name for p in first.plugins] == [p.name for p in then.plugins]\n"
    )
    ended = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, env=environment(), check=False
    )
    assert (ended.returncode, ended.stderr) == (0, "")
