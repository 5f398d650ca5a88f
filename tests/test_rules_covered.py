"""Every rule of the protocol has a test that names it: the list of rules, held against the docstrings.

Rules are numbered as in the protocol notes this project is built on (``PROTOCOL 3.7``) and in its list of
pitfalls (``C-17``). A rule that loses its last test fails here.
"""

import ast
import re
from pathlib import Path

TESTS = Path(__file__).parent

SECTIONS = {1: 3, 2: 1, 3: 11, 4: 3, 5: 4, 6: 5, 7: 3, 8: 2, 9: 12}
PROTOCOL = [f"{section}.{rule}" for section, last in SECTIONS.items() for rule in range(1, last + 1)]
PROTOCOL += ["10.1", "10.2", "10.3", "10.4", "11.3", "11.4", "11.5"]

# C-70 is measured in tests/benchmarks.
PITFALLS = [f"C-{n:02}" for n in (*range(1, 70), *range(71, 75), *range(80, 85))] + ["C-65b"]


def docstrings():
    for path in sorted(TESTS.rglob("test_*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
                yield ast.get_docstring(node) or ""


def rules_named():
    named = set()
    for text in docstrings():
        named |= set(re.findall(r"C-\d\db?", text))
        for listed in re.findall(r"PROTOCOL ([\d., and]+)", text):
            named |= set(re.findall(r"\d+\.\d+", listed))
    return named


def test_every_rule_has_a_test_that_names_it():
    named = rules_named()
    assert [rule for rule in PROTOCOL + PITFALLS if rule not in named] == []
