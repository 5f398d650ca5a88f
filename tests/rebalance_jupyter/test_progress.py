"""The line that tells how far runs are: it comes after a moment, follows the runs and disappears."""

from threading import Event
from types import SimpleNamespace

import pytest

from rebalance_jupyter import progress
from rebalance_jupyter.progress import progress_text, shown_progress

EMPTY = {"text/plain": "", "text/html": ""}


class Output:
    """What a cell displays; each line is a moment at which a test may go on."""

    def __init__(self):
        self.lines, self.written = [], Event()

    def display(self, bundle, *, raw, display_id):
        assert (raw, display_id) == (True, True)
        self.update(bundle, raw=raw)
        return self

    def update(self, bundle, *, raw):
        self.lines.append(bundle)
        self.written.set()


@pytest.fixture
def output(monkeypatch):
    """A kernel's output; the line comes at once."""
    made = Output()
    monkeypatch.setattr(progress, "display", made.display)
    monkeypatch.setattr(progress, "get_ipython", lambda: SimpleNamespace(kernel=True))
    monkeypatch.setattr(progress, "AFTER_SECONDS", 0)
    monkeypatch.setattr(progress, "EVERY_SECONDS", 0.001)
    return made


def wait_for(output, text):
    while not any(text in line["text/plain"] for line in list(output.lines)):
        output.written.clear()
        assert output.written.wait(60)


def test_the_line_follows_the_runs_and_is_empty_at_the_end(output):
    with shown_progress(["range", "<mine>"], 60_000) as move:
        wait_for(output, "range (1 of 2): 0 %, 0 s")
        move(1, 15_000)
        wait_for(output, "<mine> (2 of 2): 25 %")
    assert any("&lt;mine&gt; (2 of 2): 25 %" in line["text/html"] for line in output.lines)
    assert output.lines[-1] == EMPTY


def test_the_line_disappears_after_an_exception_too(output):
    def fail():
        with shown_progress(["range"], 60_000):
            wait_for(output, "range: 0 %")
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert output.lines[-1] == EMPTY


def test_a_single_run_has_no_number():
    assert progress_text(["sticky"], 0, 0.4, 12.4) == "sticky: 40 %, 12 s"
    assert progress_text(["range", "sticky"], 1, 1, 133) == "sticky (2 of 2): 100 %, 133 s"


@pytest.mark.parametrize(("seconds", "kernel"), [(3_600, SimpleNamespace(kernel=True)), (0, None)])
def test_a_short_run_and_one_without_a_kernel_show_nothing(output, monkeypatch, seconds, kernel):
    monkeypatch.setattr(progress, "AFTER_SECONDS", seconds)
    monkeypatch.setattr(progress, "get_ipython", lambda: kernel)
    with shown_progress(["range"], 60_000) as move:
        move(0, 30_000)
    assert output.lines == []
