"""The ``rebalance-lab`` command: its subcommands, the options that all of them have, and exit statuses."""

import logging
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from importlib.metadata import PackageNotFoundError, version
from itertools import islice, pairwise
from typing import Annotated, Any

import typer

from coordinator_core.cli import output
from coordinator_core.cli.assign import assign
from coordinator_core.cli.compare import compare
from coordinator_core.cli.extras import extra_of
from coordinator_core.cli.output import ExitStatus, complain, stdout, warn
from coordinator_core.cli.plugins import plugins
from coordinator_core.cli.schema import schema
from coordinator_core.cli.simulate import simulate
from coordinator_core.errors import InputError, RebalanceLabError
from coordinator_core.reading.suggestions import unknown_name
from coordinator_core.registry.registry import DISTRIBUTION, LOG, NO_PLUGIN, Registry, default_registry

_BUILT_IN: Mapping[str, Callable[..., None]] = {
    "compare": compare,
    "simulate": simulate,
    "assign": assign,
    "plugins": plugins,
    "schema": schema,
}
_SWITCHES = ("--traceback", "--verbose", "-v")
_SWITCH_OFF = "--no-plugin"


def call(arguments: Sequence[str]) -> int:
    """Run the command with its arguments, and return the exit status. Errors are printed as one line."""
    try:
        common, rest = _common_first(arguments)
        output.show_tracebacks("--traceback" in common)
        _log_to_stderr("--verbose" in common or "-v" in common)
        command_line(_registry_without(common))([*common, *rest], prog_name=DISTRIBUTION)
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
        rich_markup_mode="markdown",
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
        help="Write, prove, compare and score partition assignors, against the real group protocol.",
        epilog="Exit status: 0 done, 1 some inputs failed, 2 wrong use, 130 Ctrl-C. Results go to stdout.",
    )
    for name, function in _BUILT_IN.items():
        app.command(name)(_with_extra(name, function))
    for spec in registry.commands().values():
        if spec.name not in _BUILT_IN:
            app.command(spec.name)(_with_extra(spec.name, spec.function))

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
            text = f"plugin {failed.name!r} of {failed.distribution} is not available: {failed.reason}"
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
            stdout().print(f"{DISTRIBUTION} {version(DISTRIBUTION)}")
        except PackageNotFoundError:
            stdout().print(f"{DISTRIBUTION}, not installed")
        raise typer.Exit


def _with_extra(name: str, function: Callable[..., None]) -> Callable[..., None]:
    """Return the function of a command that names the extra with a module that it does not find."""

    @wraps(function)
    def command(*args: Any, **kwargs: Any) -> None:
        LOG.debug("command %s begins", name)
        try:
            function(*args, **kwargs)
        except ModuleNotFoundError as error:
            module = (error.name or "").partition(".")[0]
            extra = extra_of(module)
            if extra is None:
                raise
            expected = f'it installed: pip install "{DISTRIBUTION}[{extra}]"'
            raise InputError(name, f"no module {module}", expected) from None
        LOG.debug("command %s has ended", name)

    return command
