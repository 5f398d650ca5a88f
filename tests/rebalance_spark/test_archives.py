"""Modules, archives and wheels that are not installed can be imported, and plugins in them are found."""

import sys
import zipfile

import pytest

from coordinator_core.errors import InputError
from rebalance_lab.scoring.outcomes import Fidelity
from rebalance_lab.scoring.rows import Job, Scorer, registry_with
from rebalance_spark.shipping import importable_here
from tests.rebalance_spark.strangers import SMALL_TEXT

PLUGIN = """
from assignors.range import RangeAssignor
from coordinator_core.registry.hookspecs import AssignorSpec, hookimpl

@hookimpl
def assignors():
    return [AssignorSpec("{name}", type("Named", (RangeAssignor,), dict(name="{name}")))]
"""
METADATA = "Metadata-Version: 2.1\nName: {name}\nVersion: 1.5\n"
ENTRY_POINT = "[rebalance_lab]\nits-plugin = {module}\n"


@pytest.fixture(autouse=True)
def search_path(monkeypatch):
    """A search path, and modules, that nobody else sees."""
    before = set(sys.modules)
    monkeypatch.setattr(sys, "path", list(sys.path))
    yield
    for name in set(sys.modules) - before:
        if name.startswith("strange_"):
            del sys.modules[name]


def archive(path, module, name, assignor=None):
    """A zip as a wheel is one: a package, and metadata that name it as a plugin."""
    with zipfile.ZipFile(path, "w") as made:
        made.writestr(f"{module}/__init__.py", PLUGIN.format(name=assignor or name))
        made.writestr(f"{module}-1.5.dist-info/METADATA", METADATA.format(name=name))
        made.writestr(f"{module}-1.5.dist-info/entry_points.txt", ENTRY_POINT.format(module=module))
    return path


@pytest.mark.parametrize("ending", ["zip", "whl", "egg"])
def test_a_plugin_in_an_archive_is_found_like_one_that_is_installed(tmp_path, ending):
    name = f"strange-{ending}"
    path = archive(tmp_path / f"strange_{ending}-1.5-py3-none-any.{ending}", f"strange_{ending}", name)
    assert name not in registry_with(()).assignors()
    importable_here([str(path)])
    registry = registry_with(())
    assert name in registry.assignors()
    assert (name, "1.5") in {(p.distribution, p.version) for p in registry.plugins}
    (row,) = Scorer(Job((name,), fidelity=Fidelity.PLAN)).rows("x", SMALL_TEXT)
    assert row["status"] == "ok"
    assert f"{name} 1.5" in row["plugin_versions"].split(", ")


def test_a_strategy_of_two_archives_is_refused_and_the_distribution_chooses(tmp_path):
    for name in ("one", "two"):
        path = archive(tmp_path / f"{name}.zip", f"strange_{name}", f"strange-{name}", "strange-both")
        importable_here([str(path)])
    strategies = ("strange-one:strange-both", "strange-two:strange-both")
    rows = Scorer(Job(strategies, fidelity=Fidelity.PLAN)).rows("x", SMALL_TEXT)
    assert [(row["strategy"], row["status"]) for row in rows] == [(name, "ok") for name in strategies]
    (row,) = Scorer(Job(("strange-both",), fidelity=Fidelity.PLAN)).rows("x", SMALL_TEXT)
    assert row["status"] != "ok"
    assert "'strange-both', which strange-one and strange-two contribute" in row["error"]


def test_a_module_can_be_imported_from_the_folder_that_it_is_in(tmp_path):
    path = tmp_path / "strange_module.py"
    path.write_text(PLUGIN.format(name="strange-one"))
    importable_here([str(path)])
    assert "strange-one" in registry_with(("strange_module",)).assignors()
    assert "strange-one" not in registry_with(()).assignors()


def test_what_is_given_goes_before_what_is_installed_and_the_last_goes_first(tmp_path):
    paths = [tmp_path / name / "strange_twice.py" for name in ("a", "b")]
    for path in paths:
        path.parent.mkdir()
        path.write_text("")
    importable_here([str(path) for path in paths])
    assert sys.path[:2] == [str(tmp_path / "b"), str(tmp_path / "a")]


def test_a_relative_path_stays_right_when_the_working_directory_changes(tmp_path, monkeypatch):
    archive(tmp_path / "strange.zip", "strange_near", "strange-near")
    monkeypatch.chdir(tmp_path)
    importable_here(["strange.zip"])
    monkeypatch.chdir("/")
    assert "strange-near" in registry_with(()).assignors()


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("missing.py", "no such file"),
        ("missing.whl", "no such file"),
        ("plugin.tar.gz", "another kind of file"),
        ("folder.zip", "a folder"),
        ("folder", "a folder"),
    ],
)
def test_what_is_no_such_file_is_one_error_that_names_it(tmp_path, name, found):
    (tmp_path / "plugin.tar.gz").write_bytes(b"")
    for folder in ("folder", "folder.zip"):
        (tmp_path / folder).mkdir()
    before = list(sys.path)
    with pytest.raises(InputError) as caught:
        importable_here([str(tmp_path / name)])
    assert str(caught.value) == (
        f"--py-files {tmp_path / name}: found {found},"
        " expected a file with one of the endings .py, .zip, .egg, .whl"
    )
    assert sys.path == before
