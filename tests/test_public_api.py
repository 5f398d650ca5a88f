"""The public names of the packages, and the documents that import only those."""

import ast
import json
import re
import subprocess
import sys
import typing
from importlib import import_module
from pathlib import Path

import pytest

from coordinator_core.registry.hookspecs import Hooks
from tests import documents
from tests.places import ROOT

LAZY = (
    "coordinator_core",
    "rebalance_conformance",
    "rebalance_kafka",
    "rebalance_lab",
    "rebalance_logs",
    "rebalance_spark",
)
PACKAGES = (*LAZY, "rebalance_jupyter")
FOLDERS = [ROOT / "assignors", ROOT / "coordinator_core", *sorted((ROOT / "plugins").glob("rebalance_*"))]
TEMPLATES = ROOT / "plugins" / "rebalance_conformance" / "commands" / "templates"
DOCUMENTS = [
    *documents.DOCUMENTS,
    *sorted((ROOT / "notebooks").glob("*.ipynb")),
    *sorted(TEMPLATES.glob("*.txt")),
]
DEEPER = re.compile(r"\b(?:from|import) (?:assignors|coordinator_core|rebalance_\w+)\.\w+")


@pytest.mark.parametrize("package", PACKAGES)
def test_every_public_name_exists(package):
    module = import_module(package)
    names = module.__all__
    assert names == sorted(names)
    assert all(getattr(module, name) is not None for name in names)


@pytest.mark.parametrize("package", LAZY)
def test_type_checkers_see_the_public_names_where_they_are_imported_from(package):
    module = import_module(package)
    imports = {
        alias.asname: node.module
        for node in ast.walk(ast.parse(Path(module.__file__).read_text()))
        if isinstance(node, ast.ImportFrom) and node.module.startswith((f"{package}.", "coordinator_core."))
        for alias in node.names
    }
    assert imports == module._MODULES


@pytest.mark.parametrize("package", LAZY)
def test_an_unknown_name_is_an_attribute_error(package):
    with pytest.raises(AttributeError, match=f"module '{package}' has no attribute 'unknown'"):
        _ = import_module(package).unknown


def test_importing_a_package_imports_none_of_its_modules():
    code = f"import sys, {', '.join(LAZY)}; print(*(m for m in sys.modules if m.startswith({LAZY!r})))"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert sorted(result.stdout.split()) == sorted(LAZY)


def test_the_records_of_all_hooks_are_public_names():
    hooks = [hook for hook in vars(Hooks) if not hook.startswith("_")]
    records = {typing.get_args(typing.get_type_hints(getattr(Hooks, hook))["return"])[0] for hook in hooks}
    assert len(records) == len(hooks) == 9
    package = import_module("coordinator_core")
    assert {getattr(package, record.__name__) for record in records} == records


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda path: path.name)
def test_a_package_announces_its_types(folder):
    assert (folder / "py.typed").exists()


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_document_imports_public_names_only(path):
    assert not DEEPER.findall(path.read_text())


def notebook_imports():
    for path in sorted((ROOT / "notebooks").glob("*.ipynb")):
        for cell in json.loads(path.read_text())["cells"]:
            code = "".join(cell["source"])
            if cell["cell_type"] == "code" and not code.startswith("%"):
                yield from documents.imports(code)


def test_the_notebooks_import_names_that_exist():
    imported = list(notebook_imports())
    assert len(imported) > 10
    assert [(module, name) for module, name in imported if not hasattr(import_module(module), name)] == []
