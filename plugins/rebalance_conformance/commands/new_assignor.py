"""``rebalance-lab new-assignor``: an installable project with an assignor, its tests and its README."""

import keyword
import re
import shutil
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from string import Template
from typing import Annotated

import typer

from coordinator_core.errors import InputError
from coordinator_core.registry.registry import default_registry
from rebalance_lab.cli.output import stdout

TEMPLATES = {
    "pyproject.toml.txt": "pyproject.toml",
    "README.md.txt": "README.md",
    "assignor.py.txt": "src/$module/__init__.py",
    "test_assignor.py.txt": "tests/test_$module.py",
}
_NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")


def new_assignor(
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="Its name: lower-case words joined by hyphens.")
    ],
    directory: Annotated[
        Path | None, typer.Option("--dir", metavar="DIR", help="The project's folder; ./NAME by default.")
    ] = None,
) -> None:
    """Write a new project with a working assignor as a starting point.

    It has an entry point, the assignor, its tests, which include the conformance suite, and a README.
    """
    module = checked_name(name)
    folder = directory or Path(name)
    write_project(name, module, folder)
    say = stdout().print
    say(
        f"wrote the assignor {name!r} into {folder}; put your algorithm in src/{module}/__init__.py. Next:\n",
        markup=False,
    )
    for command in (
        f"cd {folder}",
        'pip install -e ".[test]"',
        "pytest",
        f"rebalance-lab check {name}",
        f"rebalance-lab compare SCENARIO.yaml -s {name} -s sticky",
    ):
        say(f"  {command}", markup=False)


def checked_name(name: str) -> str:
    """Return the name of the module for an assignor's name.

    Raises:
        InputError: if the name is invalid, or if an installed assignor or module has it.
    """
    if not _NAME.fullmatch(name):
        raise InputError("NAME", repr(name), "lower-case words joined by hyphens, such as busiest-first")
    if name in default_registry().assignors():
        raise InputError("NAME", f"{name!r}, which is an installed assignor", "a name that is free")
    module = name.replace("-", "_")
    if keyword.iskeyword(module) or find_spec(module) is not None:
        raise InputError("NAME", f"{name!r}, but {module} is a keyword or a module", "a name that is free")
    return module


def write_project(name: str, module: str, folder: Path) -> None:
    """Write the project, completely or not at all. A link to a folder stays.

    Raises:
        InputError: if the folder is not empty or cannot be written.
    """
    values = {"name": name, "module": module, "class_name": _class_name(name)}
    folder = folder.resolve()
    unfinished = folder.parent / f".{folder.name}.part"
    try:
        if folder.exists() and (folder == Path.cwd() or not folder.is_dir() or any(folder.iterdir())):
            raise InputError("--dir", f"{folder}, which already exists", "a new folder")
        folder.parent.mkdir(parents=True, exist_ok=True)
        unfinished.mkdir()
        try:
            _write_files(unfinished, values)
            if folder.exists():
                folder.rmdir()  # some systems cannot rename onto an empty folder
            unfinished.rename(folder)
        finally:
            shutil.rmtree(unfinished, ignore_errors=True)
    except OSError as error:
        found = f"{folder}, which cannot be written ({error.strerror})"
        raise InputError("--dir", found, "a folder that can be written to") from None


def _write_files(folder: Path, values: dict[str, str]) -> None:
    templates = files("rebalance_conformance.commands") / "templates"
    for source, target in TEMPLATES.items():
        path = folder / Template(target).substitute(values)
        path.parent.mkdir(parents=True, exist_ok=True)
        text = (templates / source).read_text(encoding="utf-8")
        path.write_text(Template(text).substitute(values), encoding="utf-8", newline="\n")


def _class_name(name: str) -> str:
    """Return ``BusiestFirst`` for ``busiest-first``."""
    return "".join(word.capitalize() for word in name.split("-"))
