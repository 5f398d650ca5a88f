"""The installed command in a process of its own, as a shell would start it."""

import json
import os
import re
import subprocess
import sys

from tests.places import ROOT

PATHS = os.pathsep.join((str(ROOT), str(ROOT / "plugins")))
COMMAND = [sys.executable, "-c", "from rebalance_lab.cli.main import run; run()"]


def environment(**more):
    return {**os.environ, "PYTHONPATH": PATHS, **more}


def in_a_process(*arguments, stdin=b"", env=None):
    """The finished process: returncode, stdout and stderr in bytes."""
    return subprocess.run(
        [*COMMAND, *map(str, arguments)],
        input=stdin,
        capture_output=True,
        env=environment(**(env or {})),
        check=False,
    )


def the_error(answer):
    """The one line of a command that was used wrongly: nothing on stdout, status 2."""
    assert (answer.status, answer.out) == (2, "")
    (line,) = answer.err.splitlines()
    assert line.startswith("error: ")
    return line.removeprefix("error: ")


def figures_of(answer):
    """Strategy -> metrics, of a comparison printed as JSON."""
    return {each["strategy"]: each["metrics"] for each in json.loads(answer.out)["strategies"]}


def rows_in(answer):
    """The cells of each row of the table, which is the third paragraph. Its heading has no label."""
    lines = answer.out.split("\n\n")[2].splitlines()
    return [re.split(" {2,}", line) for line in lines if line[0] != " "]
