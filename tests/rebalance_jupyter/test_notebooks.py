"""The notebooks run from top to bottom, and their stored outputs are what they display."""

from importlib.util import find_spec

import pytest

from tests.places import ROOT

NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
MANY_ROWS, FEW_ROWS = "range(12)", "range(3)"
"""What the notebook about Spark says of twelve groups holds for three, too, in a fraction of the time."""

PNG = "image/png"
MANY_TASKS, FEW_TASKS = 'start="range")', 'start="range", tasks=2)'
"""For so few scenarios a task for each core is enough: each starts a process of Python."""


@pytest.fixture(scope="session")
def nbformat():
    """Imported only where it is used, which takes seconds."""
    return pytest.importorskip("nbformat", reason="nbformat is not installed")


@pytest.fixture(params=NOTEBOOKS, ids=lambda path: path.stem)
def notebook(request, nbformat):
    return nbformat.read(request.param, as_version=4)


def test_there_are_six():
    assert [path.name[:2] for path in NOTEBOOKS] == ["01", "02", "03", "04", "05", "06"]


@pytest.mark.parametrize("many", [MANY_ROWS, MANY_TASKS])
def test_one_has_the_many_rows_and_tasks_that_the_tests_make_few(many):
    assert [many in path.read_text().replace('\\"', '"') for path in NOTEBOOKS].count(True) == 1


def code_cells(notebook):
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def outputs_of(notebook):
    return [output for cell in code_cells(notebook) for output in cell.outputs]


def without_pixels(notebook):
    """The outputs of each cell. Of a picture they have the digest of its SVG: pixels depend on fonts."""
    cells = [[dict(output) for output in cell.outputs] for cell in code_cells(notebook)]
    for output in (output for cell in cells for output in cell):
        output.pop("execution_count", None)
        if PNG in output.get("data", {}):
            output["data"] = {kind: text for kind, text in output["data"].items() if kind != PNG}
    return cells


@pytest.mark.slow
def test_the_first_sentence_is_what_one_can_do_after_it(notebook):
    title, sentence, *_ = notebook.cells[0].source.split("\n\n")
    assert title.startswith("# ")
    assert sentence.startswith("After this notebook you can ")
    assert sentence.count(".") == 1
    assert sentence.endswith(".")


@pytest.mark.slow
def test_it_is_stored_with_outputs_and_without_what_differs_between_machines(notebook, nbformat):
    nbformat.validate(notebook)
    assert notebook.metadata == {
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
    }
    assert [cell.metadata for cell in notebook.cells] == [{}] * len(notebook.cells)
    assert [cell.execution_count for cell in code_cells(notebook)] == [
        *range(1, len(code_cells(notebook)) + 1)
    ]
    kinds = {kind for output in outputs_of(notebook) for kind in output.get("data", {})}
    assert PNG in kinds
    assert kinds <= {PNG, "text/plain", "text/html"}
    assert {output.get("name", "stdout") for output in outputs_of(notebook)} == {"stdout"}
    assert str(ROOT) not in str(notebook)
    assert "error" not in {output.output_type for output in outputs_of(notebook)}


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_its_file_is_small_enough_for_a_code_host(path):
    assert path.stat().st_size < 300_000


@pytest.mark.slow
def test_it_runs_from_top_to_bottom_and_displays_what_is_stored(notebook):
    pytest.importorskip("nbclient", reason="nbclient is not installed")
    pytest.importorskip("ipykernel", reason="ipykernel is not installed")
    pytest.importorskip("PIL", reason="pillow is not installed")
    pytest.importorskip("resvg_py", reason="resvg-py is not installed")
    on_spark = any("rebalance_spark" in cell.source for cell in notebook.cells)
    if on_spark and not find_spec("pyspark"):
        pytest.skip("pyspark is not installed")
    from tests.rebalance_jupyter.store_outputs import executed

    was = without_pixels(notebook)
    for cell in notebook.cells:
        cell.source = cell.source.replace(MANY_ROWS, FEW_ROWS).replace(MANY_TASKS, FEW_TASKS)
    now = without_pixels(executed(notebook))
    alerts = [o for o in outputs_of(notebook) if 'role="alert"' in o.get("data", {}).get("text/html", "")]
    assert alerts == []
    if on_spark:  # few rows have other figures
        assert [bool(outputs) for outputs in now] == [bool(outputs) for outputs in was]
    else:
        assert now == was
