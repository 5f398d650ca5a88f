"""The ``rebalance-lab`` command: what there is, and how errors leave it."""

import sys

import typer

from coordinator_core.cli.assign import assign
from coordinator_core.cli.check import check
from coordinator_core.cli.compare import compare
from coordinator_core.cli.new_assignor import new_assignor
from coordinator_core.cli.output import ExitStatus, complain, warn
from coordinator_core.cli.plugins import plugins
from coordinator_core.cli.simulate import simulate
from coordinator_core.errors import RebalanceLabError
from coordinator_core.registry import default_registry

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode="markdown",
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Write, prove and compare partition assignors, against the real group protocol.",
    epilog="Exit status: 0 done, 1 some inputs failed, 2 wrong use. Results go to stdout.",
)
app.command()(compare)
app.command()(simulate)
app.command()(assign)
app.command()(plugins)
app.command()(check)
app.command()(new_assignor)


@app.callback()
def _every_command(context: typer.Context) -> None:
    if context.invoked_subcommand != "plugins":  # which says it by itself
        for failed in default_registry().failures:
            warn(f"plugin {failed.name!r} of {failed.distribution} is not available: {failed.problem}")


def run() -> None:
    """The console script: errors of ours are one line."""
    try:
        app()
    except RebalanceLabError as problem:
        complain(problem)
        sys.exit(int(ExitStatus.WRONG_USE))
