"""The ``rebalance-lab`` command: its subcommands, the options that all of them have, and exit statuses.

The list of commands imports little: each subcommand is imported when it is run or describes itself.
"""

import logging
import os
import signal
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import wraps
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from itertools import islice, pairwise
from threading import current_thread, main_thread
from types import FrameType
from typing import Annotated, Any

import typer
from typer.core import TyperCommand
from typer.main import get_command

from coordinator_core.errors import InputError, RebalanceLabError
from coordinator_core.reading.suggestions import unknown_name
from coordinator_core.registry.hookspecs import CommandSpec
from coordinator_core.registry.registry import (
    DISTRIBUTION,
    LOG,
    NO_PLUGIN,
    Registry,
    default_registry,
    registry_of_commands,
)
from rebalance_lab.cli import output
from rebalance_lab.cli.extras import extra_of
from rebalance_lab.cli.output import ExitStatus, complain, warn

_BUILT_IN: Mapping[str, CommandSpec] = {
    name: CommandSpec(name, f"rebalance_lab.cli.{name}:{name}", doc)
    for name, doc in {
        "compare": "Run strategies on a scenario, and compare their costs.",
        "explain": "Run strategies on a scenario, and explain why they differ.",
        "advise": "Try changes to a strategy, and name those that help.",
        "simulate": "Run one strategy, and describe it round by round.",
        "fuzz": "Try random events and faults until a rule is broken.",
        "assign": "Assign partitions to the members of groups, a group a line.",
        "plugins": "List plugins and what they contribute.",
        "schema": "Write the JSON schema of scenarios or of a command.",
    }.items()
}
_SWITCHES = ("--traceback", "--verbose", "-v")
_SWITCH_OFF = "--no-plugin"
_LIST_OF_COMMANDS: tuple[list[str], ...] = ([], ["-h"], ["--help"], ["--version"])
"""The first arguments with which no command is run."""
_WITHOUT_COMMANDS = ("assignors", "coordinator_core", "rebalance_lab", "rebalance_uncoordinated")
"""The packages that are not loaded for the list of commands."""


_PLAIN: Mapping[str, Any] = {"rich_markup_mode": None, "pretty_exceptions_enable": False}


def call(arguments: Sequence[str]) -> int:
    """Run the command with its arguments, and return the exit status. Errors are printed as one line."""
    try:
        common, rest = _common_first(arguments)
        output.show_tracebacks("--traceback" in common)
        _log_to_stderr("--verbose" in common or "-v" in common)
        lists_commands = not common and rest[:1] in _LIST_OF_COMMANDS
        registry = registry_of_commands(_WITHOUT_COMMANDS) if lists_commands else _registry_without(common)
        command_line(registry)([*common, *rest], prog_name=DISTRIBUTION)
    except RebalanceLabError as error:
        complain(error)
        return int(ExitStatus.WRONG_USE)
    except SystemExit as ended:
        if isinstance(ended.code, str):
            complain(ended.code)
            return int(ExitStatus.SOME_INPUTS_FAILED)
        return ended.code or 0
    return int(ExitStatus.DONE)


def command_line(registry: Registry) -> typer.Typer:
    """Return the command with the subcommands of this package and of the plugins in a registry.

    A subcommand of a plugin is left out, with a warning, if this package has one of that name.
    """
    app = typer.Typer(
        no_args_is_help=True,
        **_PLAIN,
        context_settings={"help_option_names": ["-h", "--help"]},
        help="Write, prove, compare and score partition assignors, against the real group protocol.",
        epilog="Exit status: 0 done, 1 some inputs failed, 2 wrong use, 130 Ctrl-C. Results go to stdout.",
    )
    of_plugins = [spec for spec in registry.commands().values() if spec.name not in _BUILT_IN]
    for spec in (*_BUILT_IN.values(), *of_plugins):
        _add(app, spec, registry)

    @app.callback()
    def every_command(
        context: typer.Context,
        no_plugin: Annotated[  # noqa: ARG001 - read before the plugins are loaded
            list[str] | None,
            typer.Option(_SWITCH_OFF, metavar="NAME", help="Do not load a plugin. Can be repeated."),
        ] = None,
        traceback: Annotated[  # noqa: ARG001
            bool, typer.Option("--traceback", help="Print the traceback of an exception in an author's code.")
        ] = False,
        verbose: Annotated[  # noqa: ARG001
            bool, typer.Option("--verbose", "-v", help="Report each loaded plugin, with the time, on stderr.")
        ] = False,
        version: Annotated[  # noqa: ARG001
            bool,
            typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version."),
        ] = False,
    ) -> None:
        if context.invoked_subcommand == "plugins":
            return  # it lists the failures itself
        for failed in registry.failures:
            extent = "is available in part" if failed.partial else "is not available"
            text = f"plugin {failed.name!r} of {failed.distribution} {extent}: {failed.reason}"
            warn(text, traceback=failed.traceback)
        for name in registry.commands():
            if name in _BUILT_IN:
                warn(f"the command {name!r} of a plugin is not available: rebalance-lab has one itself")

    return app


def _common_first(arguments: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the options of all commands, which may stand anywhere, and the other arguments."""
    common: list[str] = []
    rest: list[str] = []
    left = iter(arguments)
    for argument in left:
        if argument == "--":
            rest += [argument, *left]
        elif argument == _SWITCH_OFF:
            common += [argument, *islice(left, 1)]
        elif argument in _SWITCHES or argument.startswith(f"{_SWITCH_OFF}="):
            common.append(argument)
        else:
            rest.append(argument)
    return common, rest


def _registry_without(common: Sequence[str]) -> Registry:
    """Return the registry without the plugins that the options switch off.

    Raises:
        InputError: if there is no plugin of a name.
    """
    values = [after for before, after in pairwise(common) if before == _SWITCH_OFF]
    values += [text.partition("=")[2] for text in common if text.startswith(f"{_SWITCH_OFF}=")]
    if values:
        os.environ[NO_PLUGIN] = ",".join(filter(None, [os.environ.get(NO_PLUGIN, ""), *values]))
    registry = default_registry()
    loaded = [*(plugin.name for plugin in registry.plugins), *(plugin.name for plugin in registry.failures)]
    for name in values:
        if name not in registry.switched_off:
            raise unknown_name(_SWITCH_OFF, name, loaded)
    return registry


def _log_to_stderr(verbose: bool) -> None:
    LOG.handlers = []
    if verbose:
        handler = logging.StreamHandler(sys.stderr)
        handler.setFormatter(logging.Formatter("%(relativeCreated)6d ms  %(message)s"))
        LOG.addHandler(handler)
    LOG.setLevel(logging.DEBUG if verbose else logging.WARNING)


def _print_version(wanted: bool) -> None:
    if wanted:
        try:
            typer.echo(f"{DISTRIBUTION} {version(DISTRIBUTION)}")
        except PackageNotFoundError:
            typer.echo(f"{DISTRIBUTION}, not installed")
        raise typer.Exit


def _add(app: typer.Typer, spec: CommandSpec, registry: Registry) -> None:
    """Add a subcommand. One that is given as a reference is imported when it is run or describes itself."""
    reference = spec.function
    if not isinstance(reference, str):
        app.command(spec.name)(_command(spec.name, reference))
        return

    module, _, attribute = reference.partition(":")

    class Referenced(TyperCommand):
        def make_context(self, *args: Any, **kwargs: Any) -> Any:
            with registry.blaming("commands", spec.name), _naming_extra(spec.name), no_interrupt_lost():
                function = getattr(import_module(module), attribute)
            imported = typer.Typer(add_completion=False, **_PLAIN)
            imported.command(spec.name)(_command(spec.name, function))
            return get_command(imported).make_context(*args, **kwargs)

    app.command(spec.name, cls=Referenced, help=spec.doc)(lambda: None)


def _command(name: str, function: Callable[..., None]) -> Callable[..., None]:
    """Return the function of a command that is logged and names the extra that it needs."""

    @wraps(function)
    def command(*args: Any, **kwargs: Any) -> None:
        LOG.debug("command %s begins", name)
        with _naming_extra(name):
            function(*args, **kwargs)
        LOG.debug("command %s has ended", name)

    return command


@contextmanager
def no_interrupt_lost() -> Iterator[None]:
    """Raise a KeyboardInterrupt at the end, if one was raised and lost or became another error.

    Imports do that: the compiled module of PyYAML clears errors of its initialisation, and Python makes a
    RuntimeError of errors in ``__set_name__``.
    """
    ours = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if not ours or current_thread() is not main_thread():
        yield
        return
    came: list[int] = []

    def note(number: int, frame: FrameType | None) -> None:
        came.append(number)
        signal.default_int_handler(number, frame)

    signal.signal(signal.SIGINT, note)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        if came:
            raise KeyboardInterrupt from None


@contextmanager
def _naming_extra(command: str) -> Iterator[None]:
    """Name the extra that installs a module which a command does not find.

    Raises:
        InputError: if an extra installs the module.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        module = (error.name or "").partition(".")[0]
        extra = extra_of(module)
        if extra is None:
            raise
        expected = f'it installed: pip install "{DISTRIBUTION}[{extra}]"'
        raise InputError(command, f"no module {module}", expected) from None
