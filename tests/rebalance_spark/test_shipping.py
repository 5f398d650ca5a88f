"""The archive for the workers of a cluster, and the errors of workers without it."""

import subprocess
import sys
import tarfile
from importlib.metadata import distribution
from pathlib import Path
from types import SimpleNamespace

import pyspark
import pytest
from pyspark.errors import PySparkException

from coordinator_core.errors import InputError
from rebalance_spark import score, shipping, spark_session, write_scores
from rebalance_spark.sessions import check_pyspark, in_short
from rebalance_spark.shipping import _probe, ship, write_archive

PROGRAM = """
import msgspec, pluggy, rebalance_lab.scoring.rows
from importlib.metadata import entry_points
from pathlib import Path
for module in (msgspec, pluggy, rebalance_lab.scoring.rows):
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


class Session:
    """A session of a cluster that takes archives, or does not."""

    def __init__(self, error=None):
        self.error, self.settings, self.conf = error, {}, SimpleNamespace(set=self.set)
        self.sent = []

    def addArtifacts(self, path, *, archive):  # noqa: N802
        assert archive
        if self.error is not None:
            raise self.error
        self.sent.append(Path(path.partition("#")[0]).exists())

    def set(self, name, value):
        self.settings[name] = value


def test_a_running_session_gets_the_archive_and_its_python_and_the_workers_are_asked(monkeypatch):
    asked, session = [], Session()
    monkeypatch.setattr(shipping, "write_archive", lambda path: path.touch())
    monkeypatch.setattr(shipping, "check_workers", lambda *given: asked.append(given))
    ship(session, ["mine"])
    assert session.sent == [True]
    assert session.settings == {"spark.sql.execution.pyspark.python": "./rebalance-lab/bin/python"}
    assert asked == [(session, ["mine"])]


def test_a_session_that_takes_no_archive_is_refused_with_its_reason(monkeypatch):
    monkeypatch.setattr(shipping, "write_archive", lambda path: path.touch())
    with pytest.raises(InputError, match=r"ship: found a session that takes no archive .*no such thing"):
        ship(Session(PySparkException("no such thing")))


def test_an_old_pyspark_and_none_at_all_are_named(monkeypatch):
    monkeypatch.setattr(pyspark, "__version__", "3.5.1")
    for entered in (
        check_pyspark,
        spark_session,
        lambda: score(object(), ["range"]),
        lambda: ship(object()),
        lambda: write_scores(object(), ["range"], "out"),
    ):
        with pytest.raises(
            InputError, match=r"Spark: found PySpark 3\.5\.1, expected 4\.0 or newer: pip install"
        ):
            entered()
    monkeypatch.setitem(sys.modules, "pyspark", None)
    with pytest.raises(InputError, match="Spark: found no PySpark, expected PySpark: pip install"):
        check_pyspark()


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
