"""Exceptions of authors' code: the line in one line, and the traceback."""

import sys

import pytest

from coordinator_core.assigning.computing import compute_assignment
from coordinator_core.assigning.loading import load_reference
from coordinator_core.errors import AssignmentError, InputError, PluginError
from coordinator_core.model import Cluster, GroupSubscription, Subscription
from coordinator_core.reading.raised import raised, traceback_of

CLUSTER = Cluster({"t": 2})
GROUP = GroupSubscription({"a": Subscription(("t",))})

AUTHOR = """\
import helper_of_mine


class Mine:
    def assign(self, cluster, group):
        return self.look_up(group)

    def look_up(self, group):
        return group["nobody"]


class Helped(Mine):
    def look_up(self, group):
        return helper_of_mine.fail()
"""
HELPER = """\
def fail():
    raise ValueError("of the helper")
"""


@pytest.fixture
def author(tmp_path, monkeypatch):
    """A file of an author, in the working directory, with a module beside it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    (tmp_path / "mine.py").write_text(AUTHOR)
    (tmp_path / "helper_of_mine.py").write_text(HELPER)
    yield tmp_path
    sys.modules.pop("helper_of_mine", None)


def failed(reference):
    with pytest.raises(AssignmentError) as caught:
        compute_assignment(reference, CLUSTER, GROUP)
    return caught.value


def test_the_line_is_the_last_one_of_the_author(author):
    """It is neither that of `assign`, nor the one in this program that looks up the member."""
    assert str(failed("mine.py:Mine")).endswith("raised KeyError: 'nobody' (mine.py:9)")
    assert str(failed("mine.py:Helped")).endswith("raised ValueError: of the helper (mine.py:14)")


def test_a_file_outside_of_the_working_directory_has_its_whole_path(author, monkeypatch):
    (author / "sub").mkdir()
    monkeypatch.chdir(author / "sub")
    assert str(failed(f"{author}/mine.py:Mine")).endswith(f"({author}/mine.py:9)")


def test_the_traceback_begins_with_the_author(author):
    first, second, *_ = traceback_of(failed("mine.py:Helped")).splitlines()
    assert first == "Traceback (most recent call last):"
    assert second.endswith('mine.py", line 6, in assign')
    assert traceback_of(failed("mine.py:Helped")).endswith("ValueError: of the helper")


def test_an_error_without_an_author_has_no_traceback():
    assert traceback_of(InputError("here", "this", "that")) == ""


def test_an_exception_of_this_program_has_no_place():
    with pytest.raises(KeyError) as caught:
        GROUP["nobody"]
    error = caught.value.with_traceback(caught.value.__traceback__.tb_next)
    assert raised(error) == "KeyError: 'nobody'"


def test_a_file_that_cannot_be_imported_is_named_with_its_line(author):
    (author / "broken.py").write_text("x = 1\nimport no_such_module_at_all\n")
    with pytest.raises(PluginError) as caught:
        load_reference("broken.py:X")
    assert str(caught.value).endswith("No module named 'no_such_module_at_all' (broken.py:2)")


def test_a_syntax_error_names_its_own_line(author):
    (author / "broken.py").write_text("x = 1\nx = = 2\n")
    with pytest.raises(PluginError) as caught:
        load_reference("broken.py:X")
    assert str(caught.value).endswith("SyntaxError: invalid syntax (broken.py, line 2)")
