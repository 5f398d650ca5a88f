"""The example scenarios that come with the package."""

from collections.abc import Iterator, Mapping
from pathlib import Path

from rebalance_lab.scenarios.shipped import shipped
from rebalance_lab.verdicts.tables import Cell, html_table


class Examples(Mapping[str, Path]):
    """The files of scenarios by name, in the order of their names. A notebook shows what each is about."""

    def __init__(self, paths: Mapping[str, Path]) -> None:
        self._paths = paths

    def __getitem__(self, name: str) -> Path:
        if name not in self._paths:
            raise KeyError(f"no example {name!r}: there are {', '.join(self._paths)}")
        return self._paths[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._paths)

    def __len__(self) -> int:
        return len(self._paths)

    def __repr__(self) -> str:
        width = max(map(len, self._paths), default=0)
        return "\n".join(f"{name:{width}}  {self.about(name)}" for name in self._paths)

    def _repr_html_(self) -> str:
        return html_table(
            (), [[Cell(name, "bold"), Cell(self.about(name), left=True)] for name in self._paths]
        )

    def about(self, name: str) -> str:
        """Return the comment at the top of a scenario."""
        lines = self._paths[name].read_text(encoding="utf-8").splitlines()
        comment: list[str] = []
        for line in lines:
            if not line.startswith("#"):
                break
            comment.append(line.lstrip("# ").rstrip())
        return " ".join(comment)


def examples() -> Examples:
    """Return the example scenarios: ``run(examples()["bounce"], "range")``."""
    return Examples(shipped())
