"""Assignors that are not installed: from a file or a module, a class, a function or a finished object."""

import json
import subprocess
import sys
from textwrap import dedent

import pytest

from coordinator_core.assigning.computing import compute_assignment
from coordinator_core.assigning.loading import (
    assignor_from,
    author_of,
    factory_of,
    load_reference,
    reference_in,
)
from coordinator_core.errors import InputError, PluginError
from coordinator_core.model import Cluster, GroupSubscription, Subscription
from coordinator_core.registry.registry import default_registry
from tests.rebalance_lab.cli.commands import COMMAND, environment

MINE = """
from dataclasses import dataclass

LOADED = []
LOADED.append(1)
NUMBER = 5


class FirstOfAll:
    '''Everything to the first member.'''

    def assign(self, cluster, group):
        first = min(group)
        everything = [(t, p) for t in cluster.topics for p in range(cluster.partition_count(t))]
        return {first: everything}


class Named(FirstOfAll):
    name = "chosen"


class Optioned(FirstOfAll):
    options = {"start": int}

    def __init__(self, *, start=0):
        self.start = start


class HasOptionsOfItsOwn(FirstOfAll):
    options = ["not", "what", "is", "meant"]


@dataclass
class Data(FirstOfAll):
    seen: int = 0


def to_the_last(cluster, group):
    last = max(group)
    return {last: [(t, p) for t in cluster.topics for p in range(cluster.partition_count(t))]}


def of_three(cluster, group, more):
    return {}


class Neither:
    pass


made = FirstOfAll()
"""

CLUSTER = Cluster({"t": 2})
GROUP = GroupSubscription({m: Subscription(("t",)) for m in ("a", "b")})


def file_of(folder, text=MINE, name="mine.py"):
    path = folder / name
    path.write_text(dedent(text))
    return path


@pytest.fixture
def mine(tmp_path):
    return file_of(tmp_path)


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A package that can be imported by name, until the test is over."""
    (tmp_path / "authors_package").mkdir()
    (tmp_path / "authors_package" / "__init__.py").write_text("")
    monkeypatch.syspath_prepend(tmp_path)
    yield tmp_path / "authors_package"
    for name in [n for n in sys.modules if n.split(".")[0] == "authors_package"]:
        del sys.modules[name]


def busy(assignor):
    """The members that got something."""
    assignment = compute_assignment(assignor, CLUSTER, GROUP)
    return [member for member in assignment if assignment[member]]


# --- what a text refers to


@pytest.mark.parametrize(
    ("text", "reference"),
    [
        ("mine.py:Name", "mine.py:Name"),
        ("./some folder/mine.py:Name+cooperative", "./some folder/mine.py:Name"),
        ("a+b.py:X+cooperative", "a+b.py:X"),
        ("a:b.py:X", "a:b.py:X"),
        ("x.py:X+cooperative+budget=5s:range", "x.py:X"),
        ("x.py:X+budget=5s:y.py:Y", "x.py:X"),
        ("package.module:Name+static", "package.module:Name"),
        ("module:_name", "module:_name"),
        ("range", None),
        ("range+budget=5s:sticky", None),
        ("cooperative-sticky", None),
        ("mine.py", None),
        ("mine.py:", None),
        ("mine.py:Not a name", None),
        ("", None),
    ],
)
def test_a_reference_ends_where_the_first_modifier_begins(text, reference):
    assert reference_in(text) == reference


# --- what is made of it


def test_a_class_in_a_file_makes_a_fresh_assignor_each_time(mine):
    factory = load_reference(f"{mine}:FirstOfAll")
    assert busy(factory()) == ["a"]
    assert author_of(factory()) is not author_of(factory())


def test_a_function_of_two_is_an_assignor(mine):
    made = load_reference(f"{mine}:to_the_last")()
    assert author_of(made).__name__ == "to_the_last"
    assert (made.name, busy(made)) == ("to-the-last", ["b"])


def test_whatever_is_an_assignor_becomes_one_at_the_same_door(mine):
    reference = f"{mine}:FirstOfAll"
    author = author_of(assignor_from(reference))
    for anything in (reference, type(author), author, author.assign):
        assert busy(assignor_from(anything)) == busy(anything) == ["a"]


def test_a_finished_object_is_an_assignor(mine):
    made = load_reference(f"{mine}:made")()
    assert (made.name, busy(made)) == ("first-of-all", ["a"])


def test_a_class_without_a_name_gets_its_own_in_kebab_case(mine):
    assert load_reference(f"{mine}:FirstOfAll")().name == "first-of-all"
    assert load_reference(f"{mine}:Named")().name == "chosen"


@pytest.mark.parametrize(
    ("written", "name"),
    [
        ("FirstOfAll", "first-of-all"),
        ("HTTPFirst", "http-first"),
        ("GiveAList", "give-a-list"),
        ("Top10Lists", "top10-lists"),
        ("_hidden_one", "hidden-one"),
        ("plain", "plain"),
    ],
)
def test_words_of_a_name_are_told_apart(written, name):
    made = factory_of(type(written, (), {"assign": lambda self, cluster, group: {}}), "it")()
    assert made.name == name


def test_a_dataclass_works(mine):
    """Dataclasses look up the module they are in."""
    assert author_of(load_reference(f"{mine}:Data")()).seen == 0


def test_a_module_is_found_by_its_name(package):
    file_of(package)
    assert busy(load_reference("authors_package.mine:to_the_last")()) == ["b"]


def test_the_classes_options_are_those_of_the_factory(mine):
    factory = load_reference(f"{mine}:Optioned")
    assert factory.options == {"start": int}
    assert author_of(factory(start=3)).start == 3


def test_options_that_are_no_mapping_are_something_of_the_authors(mine):
    assert load_reference(f"{mine}:HasOptionsOfItsOwn").options == {}


def test_a_file_is_loaded_once_however_it_is_written(mine, monkeypatch):
    monkeypatch.chdir(mine.parent)
    references = ["mine.py:FirstOfAll", "./mine.py:FirstOfAll", f"{mine}:FirstOfAll"]
    made = [author_of(load_reference(each)()) for each in references]
    assert len({type(each) for each in made}) == 1
    assert sys.modules[type(made[0]).__module__].LOADED == [1]


def test_files_of_one_name_in_two_folders_are_two(mine, tmp_path):
    (tmp_path / "other").mkdir()
    other = file_of(tmp_path / "other", MINE.replace("Everything to", "All to"))
    here, there = (author_of(load_reference(f"{path}:FirstOfAll")()) for path in (mine, other))
    assert type(here) is not type(there)
    assert type(there).__doc__.startswith("All to")


# --- what cannot be used


def test_a_file_that_is_not_there_is_an_input_error(tmp_path):
    with pytest.raises(InputError) as caught:
        load_reference(f"{tmp_path}/no.py:Name")
    assert caught.value.found == f"no file {tmp_path}/no.py"
    assert caught.value.expected == "path/to/file.py:Name or package.module:Name"


@pytest.mark.parametrize("name", ["no_such_module_here", "authors_package.nothing", "no_such.module_here"])
def test_a_module_that_is_not_there_is_an_input_error(package, name):
    with pytest.raises(InputError, match=f"found no module {name}"):
        load_reference(f"{name}:Name")


def test_a_name_that_is_not_there_is_answered_with_those_that_are(mine):
    with pytest.raises(InputError) as caught:
        load_reference(f"{mine}:Frist")
    assert caught.value.found == "no Frist in it"
    listed = caught.value.expected.removeprefix("one of ").split(", ")
    assert listed == [
        "Data",
        "FirstOfAll",
        "HasOptionsOfItsOwn",
        "Named",
        "Optioned",
        "made",
        "to_the_last",
    ]


def test_a_file_without_an_assignor_says_so(tmp_path):
    with pytest.raises(InputError, match="one of its assignors: none"):
        load_reference(f"{file_of(tmp_path, 'X = 1')}:Y")


@pytest.mark.parametrize("name", ["NUMBER", "Neither", "of_three", "dataclass", "LOADED"])
def test_a_thing_that_is_no_assignor_is_a_plugin_error(mine, name):
    with pytest.raises(PluginError, match="neither a class with assign or solve, nor a function of two"):
        load_reference(f"{mine}:{name}")


BAD_CODE = {
    "def broken(:": "SyntaxError: ",
    "1 / 0": "ZeroDivisionError: division by zero",
    "import no_such_module_here": "ModuleNotFoundError: No module named 'no_such_module_here'",
    "import sys; sys.exit(3)": "SystemExit: 3",
    "raise BaseException('deep')": "BaseException: deep",
}


@pytest.mark.parametrize(("code", "problem"), BAD_CODE.items())
def test_what_a_file_raises_while_it_is_loaded_is_a_plugin_error(tmp_path, code, problem):
    path = file_of(tmp_path, code)
    for _ in range(2):  # it is not taken for loaded the second time
        with pytest.raises(PluginError) as caught:
            load_reference(f"{path}:Name")
        assert (caught.value.plugin, caught.value.hook) == (f"{path}:Name", "import")
        assert caught.value.reason.startswith(problem)


@pytest.mark.parametrize(("code", "problem"), list(BAD_CODE.items())[:-1])
def test_what_a_module_raises_while_it_is_imported_is_a_plugin_error(package, code, problem):
    file_of(package, code, "bad.py")
    with pytest.raises(PluginError) as caught:
        load_reference("authors_package.bad:Name")
    assert caught.value.reason.startswith(problem)


def test_who_interrupts_the_loading_is_heard(tmp_path):
    with pytest.raises(KeyboardInterrupt):
        load_reference(f"{file_of(tmp_path, 'raise KeyboardInterrupt')}:Name")


# --- in a strategy


def test_a_reference_stands_where_an_installed_name_may(mine):
    registry = default_registry()
    strategy = registry.strategy(f"{mine}:FirstOfAll+cooperative+static")
    assert (strategy.assignor, strategy.static) == (f"{mine}:FirstOfAll", True)
    assert registry.assignor(f"{mine}:FirstOfAll+cooperative").name == "first-of-all-cooperative"
    assert author_of(registry.assignor(f"{mine}:Optioned+start=4")).start == 4


def test_plus_signs_and_colons_in_a_path_belong_to_it(tmp_path):
    path = file_of(tmp_path, name="a+b:c.py")
    made = default_registry().assignor(f"{path}:to_the_last+cooperative+budget=5s:range")
    assert (made.name, busy(made)) == ("to-the-last-cooperative", ["b"])


def test_a_fallback_may_be_a_reference_too(mine):
    registry = default_registry()
    for text in (
        f"range+budget=1pairs:{mine}:to_the_last",
        f"{mine}:FirstOfAll+budget=1pairs:{mine}:to_the_last",
    ):
        assert busy(registry.assignor(text)) == ["b"]


def test_a_file_that_is_not_there_is_told_as_that_and_not_as_an_unknown_name(tmp_path):
    with pytest.raises(InputError, match=r"found no file .*no\.py"):
        default_registry().strategy(f"{tmp_path}/no.py:Name+static")


# --- in the commands


def in_folder(folder, *arguments, stdin=b""):
    return subprocess.run(
        [*COMMAND, *arguments], input=stdin, capture_output=True, cwd=folder, env=environment(), check=False
    )


@pytest.mark.slow
def test_compare_takes_files_and_its_processes_load_them_too(mine):
    scenario = {
        "name": "s",
        "duration": "15s",
        "topics": {"t": {"partitions": 2, "rate": 2}},
        "members": [{"id": "a", "topics": ["t"]}],
    }
    (mine.parent / "s.yaml").write_text(json.dumps(scenario))
    strategies = ["mine.py:FirstOfAll", "mine.py:to_the_last+cooperative"]
    chosen = [part for each in strategies for part in ("-s", each)]
    options = ["-j", "2", "--seed", "0", *chosen, "--format", "json", "--trace", "traces"]
    done = in_folder(mine.parent, "compare", "s.yaml", *options)
    assert (done.returncode, done.stderr) == (0, b"")
    assert [each["strategy"] for each in json.loads(done.stdout)["strategies"]] == strategies
    assert sorted(p.name for p in (mine.parent / "traces").iterdir()) == [
        "s.mine.py_FirstOfAll.jsonl",
        "s.mine.py_to_the_last+cooperative.jsonl",
    ]


def test_a_file_may_import_its_neighbours(tmp_path):
    (tmp_path / "neighbour_of_idea.py").write_text("NAME = 'from-next-door'\n")
    (tmp_path / "idea.py").write_text(
        "from neighbour_of_idea import NAME\n\n\nclass Mine:\n    name = NAME\n\n"
        "    def assign(self, cluster, group):\n        return {}\n"
    )
    assert load_reference(f"{tmp_path}/idea.py:Mine")().name == "from-next-door"
