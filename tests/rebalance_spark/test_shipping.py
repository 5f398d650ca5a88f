"""The archive for the workers of a cluster, and the errors of workers without it."""

import subprocess
import sys
import tarfile
from importlib.metadata import distribution

import pytest

from rebalance_spark import shipping
from rebalance_spark.sessions import in_short
from rebalance_spark.shipping import UNPACKED, shipped, write_archive
from rebalance_spark.workers import _probe

PROGRAM = """
import msgspec, pluggy, rebalance_spark.rows
from importlib.metadata import entry_points
from pathlib import Path
for module in (msgspec, pluggy, rebalance_spark.rows):
    assert Path(module.__file__).is_relative_to(Path.cwd()), module
print(len(entry_points(group="rebalance_lab")))
"""


@pytest.fixture
def few_packages(monkeypatch):
    """Only a few small distributions are required."""
    small = {"msgspec", "pluggy", "rebalance-lab"}
    require = shipping._require

    def some(name, found):
        require(name, found)
        for other in set(found) - small:
            del found[other]

    monkeypatch.setattr(shipping, "_require", some)
    monkeypatch.setattr(shipping, "_BESIDE", ("msgspec", "pluggy"))


@pytest.mark.slow
def test_the_python_of_the_archive_imports_the_packages_in_it(few_packages, tmp_path):
    write_archive(tmp_path / "archive.tar.gz")
    with tarfile.open(tmp_path / "archive.tar.gz") as archive:
        names = archive.getnames()
        archive.extraction_filter = getattr(tarfile, "fully_trusted_filter", None)  # not before 3.11.4
        archive.extractall(tmp_path / "unpacked")
    assert len(names) == len(set(names))
    assert not [name for name in names if "/tests/" in name or name.endswith((".pth", ".pyc"))]
    source = (tmp_path / "unpacked" / "bin" / "python").read_text()
    version = f"python3.{sys.version_info.minor}"
    assert f"for python in {version} '" in source
    done = subprocess.run(
        [tmp_path / "unpacked" / "bin" / "python", "-c", PROGRAM],
        cwd=tmp_path / "unpacked",
        env={"PATH": f"{sys.prefix}/bin:/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) >= len(distribution("rebalance-lab").entry_points.select(group="rebalance_lab"))


def test_a_session_is_set_to_the_archive_and_keeps_other_archives(monkeypatch, tmp_path):
    monkeypatch.setattr(shipping, "write_archive", lambda path: path.touch())
    monkeypatch.setenv("PYSPARK_PYTHON", "before")
    path = tmp_path / "a.tar.gz"
    conf = shipped(path, {"spark.archives": "other.zip", "x": "y"})
    assert conf["spark.archives"] == f"other.zip,{path}#{UNPACKED}"
    assert conf["x"] == "y"
    assert conf["spark.pyspark.python"] == f"./{UNPACKED}/bin/python" == shipping.os.environ["PYSPARK_PYTHON"]


def test_the_first_module_that_is_missing_is_named_with_the_machine():
    assert _probe(("json", "msgspec"))(0) == ""
    found = _probe(("json", "no_such_module", "nor_this"))(0)
    assert found.startswith("ModuleNotFoundError: No module named 'no_such_module' (Python 3.")


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("first\n  second\n\tat java.lang.Thread.run\n", "first second"),
        (
            f"Job aborted {'x' * 500}: Traceback (most recent call last):\n  File 'worker.py', line 1\n"
            "ModuleNotFoundError: No module named 'msgspec'\n\n\tat org.apache.spark.Task\nCaused by: x\n",
            "ModuleNotFoundError: No module named 'msgspec'",
        ),
        (
            "Traceback (most recent call last):\n    x\npyspark.errors.PySparkRuntimeError: [VERSION] 3.9\n",
            "pyspark.errors.PySparkRuntimeError: [VERSION] 3.9",
        ),
    ],
    ids=["of Java", "of Python", "of PySpark"],
)
def test_an_error_of_spark_is_one_line_with_its_cause(text, found):
    assert in_short(Exception(text)) == found
