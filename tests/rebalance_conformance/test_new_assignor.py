"""`rebalance-lab new-assignor`: a project that installs, and whose tests pass as it is written."""

import os
import subprocess
import sys
import sysconfig
import tomllib
import venv

import pytest

from rebalance_conformance.commands import new_assignor as module
from tests.places import ROOT, SCENARIOS
from tests.rebalance_lab.cli.commands import the_error

RUN = "from rebalance_lab.cli.main import run; run()"
WRITTEN = ["README.md", "pyproject.toml", "src/fewest_first/__init__.py", "tests/test_fewest_first.py"]


def written(folder):
    return sorted(str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file())


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_project_with_one_place_for_the_idea_is_written_and_what_to_do_next_printed(lab, here):
    answer = lab("new-assignor", "fewest-first")
    assert (answer.status, answer.err) == (0, "")
    project = tomllib.loads((here / "fewest-first/pyproject.toml").read_text())
    assert project["project"]["entry-points"]["rebalance_lab"] == {"fewest-first": "fewest_first"}
    assert "rebalance-lab[conformance]" in project["project"]["optional-dependencies"]["test"]
    texts = {path: (here / "fewest-first" / path).read_text() for path in written(here / "fewest-first")}
    assert list(texts) == WRITTEN
    assert [path for path in WRITTEN if "TODO" in texts[path]] == ["src/fewest_first/__init__.py"]
    assert [line.strip() for line in answer.out.splitlines()[2:]] == [
        "cd fewest-first",
        'pip install -e ".[test]"',
        "pytest",
        "rebalance-lab check fewest-first",
        "rebalance-lab compare SCENARIO.yaml -s fewest-first -s sticky",
    ]


def test_a_link_to_an_empty_folder_stays(lab, here):
    (here / "empty").mkdir()
    (here / "mine").symlink_to("empty")
    assert lab("new-assignor", "fewest-first", "--dir", "mine").status == 0
    assert (here / "mine").is_symlink()
    assert written(here / "empty") == WRITTEN
    assert sorted(p.name for p in here.iterdir()) == ["empty", "mine"]


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("Fewest", "NAME: found 'Fewest', expected lower-case words joined by hyphens"),
        ("fewest_first", "NAME: found 'fewest_first', expected lower-case words"),
        ("-", "NAME: found '-', expected lower-case words"),
        ("1st", "NAME: found '1st', expected lower-case words"),
        ("sticky", "NAME: found 'sticky', which is an installed assignor"),
        ("class", "NAME: found 'class', but class is a keyword or a module"),
        ("json", "NAME: found 'json', but json is a keyword or a module"),
        ("coordinator-core", "but coordinator_core is a keyword or a module"),
    ],
)
def test_a_name_that_cannot_be_one_is_refused(lab, here, name, said):
    assert said in the_error(lab("new-assignor", "--", name))
    assert list(here.iterdir()) == []


@pytest.mark.parametrize(
    ("place", "found"),
    [
        ("full", "which already exists, expected a new folder"),
        ("full/file", "which already exists"),
        (".", "which already exists"),
        ("full/file/mine", "which cannot be written ("),
    ],
)
def test_what_is_in_the_way_is_left_alone(lab, here, place, found):
    (here / "full").mkdir()
    (here / "full" / "file").write_text("mine")
    assert found in the_error(lab("new-assignor", "fewest-first", "--dir", place))
    assert written(here) == ["full/file"]


def test_nothing_stays_behind_when_writing_fails(lab, here, monkeypatch):
    def broken(folder, values):
        (folder / "half").write_text("half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(module, "_write_files", broken)
    assert "(No space left on device)" in the_error(lab("new-assignor", "fewest-first"))
    assert list(here.iterdir()) == []


# --- in an environment of its own


@pytest.fixture(scope="module")
def author(tmp_path_factory):
    """A fresh environment that sees what is installed here, with the project installed; runs its Python.

    The packages come from here by a .pth file, so that no network is needed.
    """
    folder = tmp_path_factory.mktemp("author")
    venv.create(folder / "venv", with_pip=False)
    python = folder / "venv" / ("Scripts" if os.name == "nt" else "bin") / "python"
    paths = {"base": str(folder / "venv"), "platbase": str(folder / "venv")}
    site_packages = sysconfig.get_path("purelib", vars=paths)
    here = sysconfig.get_path("purelib")
    with open(f"{site_packages}/seen.pth", "w") as seen:
        seen.write(f"import site; site.addsitedir({here!r})\n{ROOT}\n{ROOT / 'plugins'}\n")
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "PYTEST", "COV_"))}

    def run(*arguments, cwd=folder, program=python):
        done = subprocess.run(
            [program, *map(str, arguments)],
            cwd=cwd,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    run("-c", RUN, "new-assignor", "fewest-first")
    pip = ["-m", "pip", "--python", python, "--quiet", "--disable-pip-version-check", "install", "--no-index"]
    run(*pip, "--no-build-isolation", "--no-deps", "-e", "fewest-first", program=sys.executable)
    return run


@pytest.mark.slow
def test_the_project_passes_its_tests_and_its_assignor_is_listed_checked_and_compared(author):
    project = author("-c", "import fewest_first; print(fewest_first.__file__)").strip()
    out = author("-m", "pytest", "-q", "-p", "no:cacheprovider", cwd=project.rsplit("src", 1)[0])
    assert "passed" in out
    assert "  fewest-first  " in author("-c", RUN, "plugins")
    assert "✗" not in author("-c", RUN, "check", "fewest-first", "-n", "10")
    scenario = SCENARIOS / "scale-out.yaml"
    table = author("-c", RUN, "compare", scenario, "--seeds", "2", "-s", "fewest-first", "-s", "sticky")
    assert {"fewest-first", "sticky"} <= {word for line in table.splitlines() for word in line.split()[:1]}
    with pytest.raises(AssertionError, match="'fewest-first', which is an installed assignor"):
        author("-c", RUN, "new-assignor", "fewest-first", "--dir", "again")
