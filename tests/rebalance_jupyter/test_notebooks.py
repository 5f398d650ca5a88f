"""The notebooks run from top to bottom as they are in the repository: without outputs."""

from importlib.util import find_spec

import pytest

from tests.places import ROOT

NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
MANY_ROWS, FEW_ROWS = '"rows": 200', '"rows": 20'
"""What the notebook about Spark says of 200 scenarios holds for 20 too, in a fraction of the time."""

MANY_TASKS, FEW_TASKS = 'fidelity="plan")', 'fidelity="plan", tasks=2)'
"""For so few scenarios a task for each core is enough: each starts a process of Python."""


@pytest.fixture(scope="session")
def nbformat():
    """Imported only where it is used, which takes seconds."""
    return pytest.importorskip("nbformat", reason="nbformat is not installed")


@pytest.fixture(params=NOTEBOOKS, ids=lambda path: path.stem)
def notebook(request, nbformat):
    return nbformat.read(request.param, as_version=4)


def test_there_are_five():
    assert [path.name[:2] for path in NOTEBOOKS] == ["01", "02", "03", "04", "05"]


@pytest.mark.parametrize("many", [MANY_ROWS, MANY_TASKS])
def test_one_has_the_many_rows_and_tasks_that_the_tests_make_few(many):
    assert [many in path.read_text().replace('\\"', '"') for path in NOTEBOOKS].count(True) == 1


@pytest.mark.slow
def test_it_is_kept_without_what_a_run_leaves(notebook, nbformat):
    nbformat.validate(notebook)
    assert set(notebook.metadata) == {"kernelspec", "language_info"}
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert [(cell.outputs, cell.execution_count) for cell in code] == [([], None)] * len(code)
    assert [cell.metadata for cell in notebook.cells] == [{}] * len(notebook.cells)


@pytest.mark.slow
def test_it_runs_from_top_to_bottom(notebook):
    nbclient = pytest.importorskip("nbclient", reason="nbclient is not installed")
    pytest.importorskip("ipykernel", reason="ipykernel is not installed")
    if any("rebalance_spark" in cell.source for cell in notebook.cells) and not find_spec("pyspark"):
        pytest.skip("pyspark is not installed")
    for cell in notebook.cells:
        cell.source = cell.source.replace(MANY_ROWS, FEW_ROWS).replace(MANY_TASKS, FEW_TASKS)
    folder = NOTEBOOKS[0].parent  # as the notebooks of a checkout do, it may look for files beside it
    client = nbclient.NotebookClient(notebook, timeout=600, resources={"metadata": {"path": str(folder)}})
    client.execute()
    shown = [output for cell in notebook.cells for output in cell.get("outputs", ())]
    assert shown
    errors = [output for output in shown if output.output_type == "error"]
    alerts = [output for output in shown if 'role="alert"' in output.get("data", {}).get("text/html", "")]
    assert errors == alerts == []
