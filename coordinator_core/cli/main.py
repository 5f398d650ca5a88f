"""The ``rebalance-lab`` command: its subcommands, and the exit status of errors."""

import sys
from collections.abc import Callable, Mapping

import typer

from coordinator_core.cli.assign import assign
from coordinator_core.cli.compare import compare
from coordinator_core.cli.extras import extra_of
from coordinator_core.cli.output import ExitStatus, complain, warn
from coordinator_core.cli.plugins import plugins
from coordinator_core.cli.simulate import simulate
from coordinator_core.errors import InputError, RebalanceLabError
from coordinator_core.registry.registry import DISTRIBUTION, Registry, default_registry

_BUILT_IN: Mapping[str, Callable[..., None]] = {
    "compare": compare,
    "simulate": simulate,
    "assign": assign,
    "plugins": plugins,
}


def command_line(registry: Registry) -> typer.Typer:
    """Return the command with the subcommands of this package and of the plugins in a registry.

    A subcommand of a plugin is left out, with a warning, if this package has one of that name.
    """
    app = typer.Typer(
        no_args_is_help=True,
        rich_markup_mode="markdown",
        add_completion=False,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
        help="Write, prove, compare and score partition assignors, against the real group protocol.",
        epilog="Exit status: 0 done, 1 some inputs failed, 2 wrong use. Results go to stdout.",
    )
    for name, function in _BUILT_IN.items():
        app.command(name)(function)
    for spec in registry.commands().values():
        if spec.name not in _BUILT_IN:
            app.command(spec.name)(spec.function)

    @app.callback()
    def every_command(context: typer.Context) -> None:
        if context.invoked_subcommand == "plugins":
            return  # it lists the failures itself
        for failed in registry.failures:
            warn(f"plugin {failed.name!r} of {failed.distribution} is not available: {failed.reason}")
        for name in registry.commands():
            if name in _BUILT_IN:
                warn(f"the command {name!r} of a plugin is not available: rebalance-lab has one itself")

    return app


def run() -> None:
    """Run the console script. Errors of this program are printed as one line."""
    try:
        command_line(default_registry())()
    except RebalanceLabError as error:
        complain(error)
    except ModuleNotFoundError as error:
        module = (error.name or "").partition(".")[0]
        extra = extra_of(module)
        if extra is None:
            raise
        expected = f'it installed: pip install "{DISTRIBUTION}[{extra}]"'
        complain(InputError("command", f"no module {module}", expected))
    sys.exit(int(ExitStatus.WRONG_USE))
