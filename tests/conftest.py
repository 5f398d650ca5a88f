"""Marks, profiles of Hypothesis, the distribution over processes, and the command in this process."""

import gc
import io
import os
import signal
import sys
from asyncio import events
from collections.abc import Generator, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import HealthCheck, Phase, settings

from rebalance_lab.cli.main import run

ANY_MACHINE: dict[str, Any] = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
"""A busy neighbour slows down examples; that is not an error."""

settings.register_profile("short", max_examples=5, **ANY_MACHINE)
settings.register_profile("first", max_examples=5, phases=(Phase.explicit, Phase.generate), **ANY_MACHINE)
settings.register_profile("long", max_examples=20, **ANY_MACHINE)
settings.load_profile("short")  # --hypothesis-profile=long replaces it before tests are collected

MARKED_BY_FIXTURE = ("browser", "kafka", "spark")

IN_BROWSERS = Path(__file__).parent / "rebalance_jupyter"

BESIDE_KAFKA = ("tests/beside_kafka/", "tests/real_kafka/")
"""Tests that share the broker of the fixture `kafka`."""

LONG = (
    *BESIDE_KAFKA,
    "tests/rebalance_spark/test_cluster.py",
    "tests/rebalance_spark/test_assigning.py",  # with all that shares its session
    "tests/rebalance_spark/test_score_command.py",  # with all that shares its session
    "tests/coordinator_core/families/test_tables.py::test_a_comparison_and_its",
    "tests/rebalance_jupyter/test_notebooks.py::test_it_runs_from_top_to_bottom",
    "tests/rebalance_lab/simulation/test_quiet.py::test_the_trace_of_any_run",
    "tests/rebalance_spark/test_connect.py",
    "tests/rebalance_spark/test_java.py::test_spark_runs",
    "tests/rebalance_jupyter/test_jupyterlab.py",
    "tests/rebalance_jupyter/test_notebook7.py",
    "tests/rebalance_jupyter/test_saved.py",
)
"""Tests that take longest, and files whose tests share something; none waits in a process behind another."""

BEGINNING = (
    *LONG,
    "tests/test_readme.py",
    "tests/rebalance_spark",
    "tests/rebalance_jupyter",
    "tests/rebalance_kafka",
    "tests/assignors",
)
"""These begin, in this order, so that no process still works on one of them when the others have finished."""


def pytest_configure() -> None:
    """Take Ctrl-C in a process that a shell started in the background, too: it ignores Ctrl-C, and so
    would the processes of the tests."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Hide the event loop of Playwright, which counts as running in this thread even while it sleeps."""
    if item.path.is_relative_to(IN_BROWSERS):
        return (yield)
    kept = events._get_running_loop()
    events._set_running_loop(None)
    try:
        return (yield)
    finally:
        events._set_running_loop(kept)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark the tests that use a browser, a real Kafka or the Spark session; the longest files come first."""
    if config.getoption("benchmark_skip") and not config.getoption("benchmark_only"):
        measured = {item for item in items if "benchmark" in getattr(item, "fixturenames", ())}
        config.hook.pytest_deselected(items=list(measured))  # skipped are tests that lack a tool
        items[:] = [item for item in items if item not in measured]
    for item in items:
        arguments = getattr(getattr(item, "callspec", None), "params", {})
        for name in MARKED_BY_FIXTURE:
            if name in getattr(item, "fixturenames", ()) and name not in arguments:  # of a table, no fixture
                item.add_marker(name)
        if item.get_closest_marker("kafka"):
            item.add_marker("slow")
    items.sort(key=_place)


def _place(item: pytest.Item) -> int:
    """Return the place of a test in the order in which tests begin."""
    return next((n for n, name in enumerate(BEGINNING) if item.nodeid.startswith(name)), len(BEGINNING))


def pytest_collection_finish(session: pytest.Session) -> None:
    """Exempt what lives as long as the run from garbage collection: tests that collect garbage take no longer
    with thousands of others. What tests make is collected less often, as most of it has no cycles."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(5_000, 20, 1_000)


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """One worker more than there are cores, as some tests wait for other processes."""
    given = os.environ.get("PYTEST_XDIST_AUTO_NUM_WORKERS")
    return int(given) if given else (os.cpu_count() or 1) + 1


ON_SPARK = (
    ("assigning", "data_source", "decisions", "files", "job", "storage"),
    ("documents", "logs", "score_command", "scoring", "sources", "workload"),
)
SPARK = [tuple(f"tests/rebalance_spark/test_{name}.py" for name in names) for names in ON_SPARK]
"""Files that share a Spark session. One session for all of them would outlast all other tests."""
SHARING = (
    "tests/assignors/test_vectors.py",
    "tests/rebalance_lab/cli/test_determinism.py",
    "tests/rebalance_conformance/test_check_command.py",
    "tests/rebalance_conformance/test_new_assignor.py",
    "tests/rebalance_conformance/test_pytest_plugin.py",
    "tests/rebalance_jupyter/test_kernel.py",
    "tests/rebalance_jupyter/test_page",
    "tests/rebalance_spark/test_cluster.py",
)
"""Files with slow tests that share something that takes long to set up."""


def _is_long(unit: Mapping[str, bool]) -> bool:
    """Return whether a unit of work of xdist begins with one of the longest tests."""
    return next(iter(unit)).startswith(LONG)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Distribute the fast tests by file, and slow ones singly unless they share what takes long to set up."""
    from xdist.scheduler import LoadScopeScheduling

    config.option.loadscopereorder = False  # the order of the collection: the longest files first
    by_file = ("",) if config.option.markexpr.startswith("not slow") else SHARING

    class Together(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            if nodeid.startswith(BESIDE_KAFKA):
                return "kafka"
            for number, files in enumerate(SPARK):
                if nodeid.startswith(files):
                    return f"spark {number}"
            return nodeid.partition("::")[0] if nodeid.startswith(by_file) else nodeid

        def _reschedule(self, node: Any) -> None:
            """Let one test wait behind the one that runs: a process needs it. Others might wait long."""
            if not self.workqueue or self._pending_of(self.assigned_work[node]) < 2:
                super()._reschedule(node)

        def _assign_work_unit(self, node: Any) -> None:
            """Put none of the longest tests behind another one."""
            begun = self.assigned_work.get(node, {}).values()
            if any(_is_long(unit) for unit in begun if not all(unit.values())):
                other = next((name for name, unit in self.workqueue.items() if not _is_long(unit)), None)
                if other is not None:
                    self.workqueue.move_to_end(other, last=False)
            super()._assign_work_unit(node)

    return Together(config, log)


@pytest.fixture(scope="session")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A real Kafka with short sessions. Its log stays in the temporary folder, which pytest names."""
    from tests.real_kafka.broker import Kafka
    from tests.real_kafka.jars import UnavailableError
    from tests.real_kafka.settings import SHORT

    try:
        with Kafka(tmp_path_factory.mktemp("kafka"), SHORT) as running:
            yield running
    except UnavailableError as reason:
        pytest.skip(str(reason))


class Answer(NamedTuple):
    status: int
    out: str
    err: str


@pytest.fixture
def lab(monkeypatch, capfdbinary):
    """Call the command in this process: arguments in, exit status and both outputs out."""

    def call(*arguments, stdin=b""):
        monkeypatch.setattr(sys, "argv", ["rebalance-lab", *map(str, arguments)])
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin), encoding="utf-8"))
        capfdbinary.readouterr()
        handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
        with pytest.raises(SystemExit) as ended:
            run()
        for number, handler in handlers.items():
            if signal.getsignal(number) is not handler:  # not in other threads than the main one
                signal.signal(number, handler)
        sys.stdout.flush()
        out, err = capfdbinary.readouterr()
        return Answer(ended.value.code or 0, out.decode(), err.decode())

    return call


@pytest.fixture
def search_path(monkeypatch):
    """Where this process imports from; what a test adds, and Spark with the files it is given, goes again."""
    monkeypatch.setattr(sys, "path", list(sys.path))
    return sys.path
