"""Authors' code in a kernel, which has threads of its own: it runs, prints, fails, hangs and is ended."""

import re

import pytest

from tests.rebalance_jupyter.samples import SCALE_OUT

pytestmark = pytest.mark.slow

CELLS = [
    f"from rebalance_jupyter import Lab, run\nscenario = {SCALE_OUT!r}\n"
    "def first(cluster, group):\n"
    "    given = [(t, p) for t, info in cluster.topics.items() for p in range(info.partitions)]\n"
    "    return {min(group): given}",
    "def talks(cluster, group):\n    print('members:', len(group))\n    return first(cluster, group)\n"
    "print(run(scenario, talks).ended.group_state)",
    "class Wrong:\n    def assign(self, cluster, group):\n        return group['nobody']\n"
    "run(scenario,\n    Wrong)",
    "def spins(cluster, group):\n    while len(group) > 2:\n        pass\n    return first(cluster, group)\n"
    "run(scenario, spins, limit_s=1)",
    "import os, time\nlab = Lab(scenario, [spins, 'range'])\nlab.run(wait=False)\n"
    "while 'spins' not in lab.status.value:\n    time.sleep(0.01)\n"
    "lab.cancel()\nlab._thread.join(60)\nprint(lab.status.value)\n"
    "def spins(cluster, group):\n    return first(cluster, group)\n"
    "lab.run()\nprint([trace.strategy for trace in lab.traces])",
    "from rebalance_conformance import check_assignor\n"
    "def spins(cluster, group):\n    while group:\n        pass\n    return {}\n"
    "check_assignor(spins, checks=['raises'], limit_s=1)",
]


@pytest.fixture(scope="module")
def outputs():
    """The outputs of each cell."""
    nbformat = pytest.importorskip("nbformat", reason="nbformat is not installed")
    nbclient = pytest.importorskip("nbclient", reason="nbclient is not installed")
    cells = [nbformat.v4.new_code_cell(source) for source in CELLS]
    notebook = nbformat.v4.new_notebook(cells=cells)
    nbclient.NotebookClient(notebook, kernel_name="python3", allow_errors=True, timeout=300).execute()
    return [cell.outputs for cell in notebook.cells]


def printed(outputs):
    return "".join(output.text for output in outputs if output.output_type == "stream")


def error_of(outputs):
    (error,) = [output.traceback for output in outputs if output.output_type == "error"]
    return error


def test_output_of_an_assignor_is_that_of_the_cell(outputs):
    assert printed(outputs[1]) == "members: 2\nmembers: 3\nmembers: 2\nStable\n"


def test_an_exception_has_the_lines_of_both_cells_and_none_of_this_program(outputs):
    call, message = error_of(outputs[2])
    assert call == "line 4: run(scenario,"
    assert message.endswith("raised KeyError: 'nobody' (cell In[3], line 3: return group['nobody'])")


def test_an_endless_loop_is_ended_with_its_line_and_the_progress_has_disappeared(outputs):
    call, message = error_of(outputs[3])
    assert call == "line 5: run(scenario, spins, limit_s=1)"
    place = r"within 1 s \(cell In\[4\], line [23]: (while len\(group\) > 2:|pass)\)$"
    assert re.search(r"'spins': did not get further than 3\d.*s of the scenario " + place, message)
    (line,) = [output for output in outputs[3] if output.output_type == "display_data"]
    assert line.data == {"text/plain": "", "text/html": ""}


def test_a_bench_cancels_an_endless_loop_and_runs_what_its_cell_defines_then(outputs):
    assert printed(outputs[4]) == "cancelled\n['spins', 'range']\n"


def test_a_check_of_an_endless_loop_fails_at_its_limit_and_the_progress_has_disappeared(outputs):
    progress, report = outputs[5]
    assert progress.data["text/html"] == ""
    assert "failed: no answer within 1 s" in report.data["text/html"]
