"""The scenarios that come with the package, by name."""

from pathlib import Path

from coordinator_core.errors import InputError
from coordinator_core.reading.suggestions import one_of

_INSTALLED = Path(__file__).parent / "shipped"
_CHECKOUT = Path(__file__).parents[3] / "tests" / "data" / "scenarios"
"""Of a checkout the package has no copy."""


def shipped() -> dict[str, Path]:
    """Return the files of the scenarios by name, in the order of their names."""
    folder = _INSTALLED if _INSTALLED.exists() else _CHECKOUT
    return {path.stem: path for path in sorted(folder.glob("*.yaml"), key=lambda path: path.stem)}


def scenario_path(name: Path | str) -> Path:
    """Return the file that is meant: the file itself, or the scenario of that name in the package.

    Raises:
        InputError: if the name is neither that of a file nor of a scenario.
    """
    path = Path(name)
    if path.suffix or len(path.parts) != 1 or path.exists():
        return path
    scenarios = shipped()
    if path.name not in scenarios:
        expected = f"a file, or a scenario that comes with the package: {one_of(path.name, scenarios)}"
        raise InputError(path.name, "neither a file nor the name of a scenario", expected)
    return scenarios[path.name]
