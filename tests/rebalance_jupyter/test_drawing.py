"""The drawing's code: the committed file is built from it, and its own tools find nothing wrong."""

import hashlib
import json
import os
import shutil
import subprocess
import sys
import zipfile

import pytest

from rebalance_jupyter import compare_view
from rebalance_jupyter.page import MODULE, STYLE, packed_module
from rebalance_jupyter.view_model import view_model
from tests.places import NODE_MODULES, ROOT, node_modules
from tests.rebalance_jupyter.samples import CUT_OFF, NOBODY, ran

PACKAGE = ROOT / "plugins" / "rebalance_jupyter"
NEEDS = json.loads((PACKAGE / "package.json").read_text())


def test_the_committed_file_is_built_from_the_modules():
    modules = [path for path in (PACKAGE / "src").glob("*.js") if not path.name.endswith(".test.js")]
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in sorted(modules))).hexdigest()
    told = MODULE.read_text().splitlines()[0]
    assert told == f"// Built from src, whose digest is {digest}", "build it again: npm run build"


def test_what_each_view_carries_is_small():
    assert len(packed_module()) + len(STYLE.read_bytes()) < 60_000


def numbers(version):
    return [int(part) for part in version.strip().removeprefix("v").split(".")]


@pytest.fixture
def workshop(tmp_path):
    """A copy of the package beside the tools, which find each other only there."""
    if shutil.which("npm") is None:
        pytest.skip("there is no npm on the PATH")
    wanted = NEEDS["engines"]["node"].removeprefix(">=")
    found = subprocess.run(["node", "--version"], check=True, capture_output=True, text=True).stdout
    if numbers(found) < numbers(wanted):
        pytest.skip(f"the tools need node {wanted}, found {found}")
    lacking = [name for name in NEEDS["devDependencies"] if not (node_modules() / name).is_dir()]
    if lacking:
        pytest.skip(f"there is no {', '.join(lacking)} in {node_modules()}, which {NODE_MODULES} names")
    copied = shutil.copytree(
        PACKAGE, tmp_path / "copy", ignore=shutil.ignore_patterns("node_modules", "*.py")
    )
    (copied / "node_modules").symlink_to(node_modules())
    return copied


def npm_run(script, folder):
    done = subprocess.run(
        ["npm", "run", "--silent", script],
        cwd=folder,
        env=os.environ | {"NO_COLOR": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout


@pytest.mark.slow
def test_a_new_build_is_the_committed_file(workshop):
    built = workshop / "static" / "view.js"
    built.unlink()
    npm_run("build", workshop)
    assert built.read_text() == MODULE.read_text()


@pytest.mark.slow
@pytest.mark.parametrize("script", ["check", "lint", "test"])
def test_its_tools_find_nothing_wrong(workshop, script):
    npm_run(script, workshop)


@pytest.mark.slow
def test_what_python_gives_is_what_the_types_describe(workshop):
    """Also that it has nothing else."""
    compared = compare_view([ran(strategy="range"), ran()])
    documents = [view["document"] for view in compared.views]
    documents += [view_model(trace).document for trace in (ran(NOBODY), ran(CUT_OFF, "rocketmq"))]
    (workshop / "src" / "given.ts").write_text(
        'import type { Facts, Figures } from "./model";\n'
        f"export const documents: Facts[] = {json.dumps(documents)};\n"
        f"export const figures: Figures = {json.dumps(compared.figures)};\n"
    )
    npm_run("check", workshop)


@pytest.mark.slow
def test_a_wheel_has_the_committed_file_and_none_of_its_sources(tmp_path):
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", tmp_path]
    subprocess.run(build, cwd=ROOT, check=True, stdout=subprocess.DEVNULL, timeout=300)
    (wheel,) = tmp_path.glob("*.whl")
    names = [name for name in zipfile.ZipFile(wheel).namelist() if name.startswith("rebalance_jupyter/")]
    kinds = (".css", ".js", ".json", ".mjs", ".ts")
    assert [name for name in names if name.endswith(kinds)] == [
        "rebalance_jupyter/static/view.css",
        "rebalance_jupyter/static/view.js",
    ]
