"""Scenarios from files and streams: YAML or JSON, read with limits, parsed by `scenario`."""

import json
import re
from pathlib import Path
from typing import Any, NoReturn, TextIO

import yaml

from coordinator_core.errors import InputError
from coordinator_core.registry.registry import Registry
from rebalance_lab.scenarios.scenario import Scenario, parse_scenario
from rebalance_lab.scenarios.shipped import scenario_path

LARGEST = 4_000_000
DEEPEST = 50
_TOO_LARGE = f"a scenario of at most {LARGEST // 1_000_000} MB"
_SHALLOW = 2_000
"""The length of a text that needs no check of its depth, as each level takes at least one character."""
_EMPTY = "a scenario with name, duration, topics and members"

_JSON_OBJECT = re.compile(r'\s*\{\s*"')

_Base: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class _Loader(_Base):  # type: ignore[misc]  # the base is chosen at run time: libyaml's where it is built
    """A safe YAML loader that refuses a key that occurs twice. PyYAML would keep the last one."""

    def flatten_mapping(self, node: Any) -> None:
        if not getattr(node, "was_checked", False):  # a merged node is flattened a second time
            node.was_checked = True
            self._check_keys(node)
        super().flatten_mapping(node)

    def _check_keys(self, node: Any) -> None:
        seen: set[str] = set()
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode):
                raise yaml.constructor.ConstructorError(None, None, "a key that is not text", key.start_mark)
            if key.value in seen and key.tag != "tag:yaml.org,2002:merge":
                problem = f"the key {key.value!r} twice"
                raise yaml.constructor.ConstructorError(None, None, problem, key.start_mark)
            seen.add(key.value)


_Loader.add_constructor("tag:yaml.org,2002:set", _Loader.construct_undefined)
"""A set has no order, and a list of topics or members has one."""


def load_scenario(path: Path | str, *, registry: Registry | None = None) -> Scenario:
    """Return the scenario of a file, or the one of that name that comes with the package.

    Paths of CSV files are relative to the file.

    Raises:
        InputError: if there is no such scenario, the file cannot be read, or the scenario is wrong.
    """
    path = scenario_path(path)
    return load_scenario_text(read_text(path), str(path), base_dir=path.parent, registry=registry)


def read_text(path: Path) -> str:
    """Return the text of a file.

    Raises:
        InputError: if the file cannot be read, or is too large for a scenario.
    """
    try:
        size = path.stat().st_size
        if size > LARGEST:
            raise InputError(str(path), f"a file of {size:,} bytes", _TOO_LARGE)
        with path.open("rb") as file:
            data = file.read(LARGEST + 1)
    except OSError as error:
        found = f"a file that cannot be read ({error.strerror})"
        raise InputError(str(path), found, "a scenario in YAML or JSON") from None
    return _decoded(data, str(path))


def load_scenario_stream(
    stream: TextIO, where: str = "standard input", *, registry: Registry | None = None
) -> Scenario:
    """Return the scenario of a text stream. Paths of CSV files are relative to the working directory."""
    try:
        text = stream.read(LARGEST + 1)
    except UnicodeDecodeError as error:
        raise InputError(where, f"bytes that are not UTF-8 ({error.reason})", "text in UTF-8") from None
    return load_scenario_text(text, where, base_dir=Path(), registry=registry)


def load_scenario_text(
    text: str, where: str, *, base_dir: Path | None = None, registry: Registry | None = None
) -> Scenario:
    """Return the scenario of a text in YAML or JSON. ``where`` names it in errors."""
    return parse_scenario(read_document(text, where), where=where, base_dir=base_dir, registry=registry)


def read_document(text: str, where: str) -> Any:
    """Return the value of a text in YAML or JSON.

    Raises:
        InputError: if the text is not YAML or JSON.
    """
    if len(text) > LARGEST:
        raise InputError(where, f"more than {LARGEST:,} characters", _TOO_LARGE)
    if not text.strip():
        raise InputError(where, "nothing (it is empty)", _EMPTY)
    document = _json(text, where) if _looks_like_json(text, where) else _yaml(text, where)
    if document is None:
        raise InputError(where, "nothing (only comments)", _EMPTY)
    return document


def _decoded(data: bytes, where: str) -> str:
    if len(data) > LARGEST:
        raise InputError(where, f"more than {LARGEST:,} bytes", _TOO_LARGE)
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise InputError(f"{where}: line {line}", "bytes that are not UTF-8", "text in UTF-8") from None


def _looks_like_json(text: str, where: str) -> bool:
    return where.endswith(".json") or _JSON_OBJECT.match(text) is not None


def _json(text: str, where: str) -> Any:
    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        made = dict(pairs)
        if len(made) < len(pairs):
            keys = [key for key, _ in pairs]
            twice = next(key for key in keys if keys.count(key) > 1)
            raise InputError(where, f"the key {twice!r} twice in one object", "each key once")
        return made

    def refuse(constant: str) -> NoReturn:
        raise InputError(where, constant, "a finite number")

    try:
        return json.loads(text, object_pairs_hook=once, parse_constant=refuse)
    except json.JSONDecodeError as error:
        place = f"{where}: line {error.lineno}, column {error.colno}"
        raise InputError(place, _reason(error.msg), "a scenario in JSON") from None
    except (RecursionError, ValueError) as error:
        raise InputError(where, _reason(str(error)), "a scenario in JSON") from None


def _yaml(text: str, where: str) -> Any:
    try:
        if len(text) > _SHALLOW:
            _check_depth(text, where)
        return yaml.load(text, Loader=_Loader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = where if mark is None else f"{where}: line {mark.line + 1}, column {mark.column + 1}"
        raise InputError(place, _reason(error.problem or "text"), "a scenario in YAML or JSON") from None
    except (yaml.YAMLError, RecursionError, ValueError, TypeError, LookupError, AttributeError) as error:
        # the loader raises the last three for `!!int ''`, `!!bool x` and `!!timestamp x`
        raise InputError(where, _reason(str(error)), "a scenario in YAML or JSON") from None


def _check_depth(text: str, where: str) -> None:
    """Refuse deep nesting. libyaml recurses without a limit: a megabyte of brackets would end the process."""
    depth = 0
    for event in yaml.parse(text, Loader=_Base):
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > DEEPEST:
            raise InputError(where, f"more than {DEEPEST} levels of nesting", "a scenario in YAML or JSON")


def _reason(text: str) -> str:
    return f"what cannot be read ({' '.join(text.split())[:120]})"
