"""Every rule of the protocol has a test that cites its number.

The rules are the numbered entries of README.md and PITFALLS.md in coordinator_core/protocol.
"""

import ast
import re
from functools import cache

from tests.places import ROOT

RULES = ROOT / "coordinator_core" / "protocol"
MEASURED = {"C-70"}
"""Rules that tests/benchmarks measures."""
CITATION = re.compile(r"C-\d\db?|PROTOCOL [\d., and]+")


def rules():
    text = (RULES / "README.md").read_text() + (RULES / "PITFALLS.md").read_text()
    return re.findall(r"^- \*\*([\w.-]+)\*\* ", text, re.MULTILINE)


def docstrings():
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        if not CITATION.search(text := path.read_text()):
            continue
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
                yield ast.get_docstring(node) or ""


@cache
def cited():
    numbers = set()
    for text in docstrings():
        numbers |= set(re.findall(r"C-\d\db?", text))
        for listed in re.findall(r"PROTOCOL ([\d., and]+)", text):
            numbers |= set(re.findall(r"\d+\.\d+", listed))
    return numbers


def test_the_rules_are_numbered_once():
    listed = rules()
    assert len(listed) == len(set(listed)) == 138


def test_every_rule_has_a_test_that_cites_it():
    assert set(rules()) - cited() - MEASURED == set()


def test_every_number_that_a_test_cites_is_a_rule():
    assert cited() - set(rules()) == set()
