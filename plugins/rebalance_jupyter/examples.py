"""The example scenarios that come with the package."""

from itertools import takewhile
from pathlib import Path

from rebalance_lab.scenarios.shipped import shipped
from rebalance_lab.verdicts.tables import Cell, html_table


class Examples(dict[str, Path]):
    """The files of scenarios by name, in the order of their names. A notebook shows what each is about."""

    def __missing__(self, name: str) -> Path:
        raise KeyError(f"no example {name!r}: there are {', '.join(self)}")

    def __repr__(self) -> str:
        width = max(map(len, self), default=0)
        return "\n".join(f"{name:{width}}  {self.about(name)}" for name in self)

    def _repr_html_(self) -> str:
        return html_table((), [[Cell(name, "bold"), Cell(self.about(name), left=True)] for name in self])

    def about(self, name: str) -> str:
        """Return the comment at the top of a scenario."""
        lines = self[name].read_text(encoding="utf-8").splitlines()
        comment = takewhile(lambda line: line.startswith("#"), lines)
        return " ".join(line.lstrip("# ").rstrip() for line in comment)


def examples() -> Examples:
    """Return the example scenarios: ``run(examples()["bounce"], "range")``."""
    return Examples(shipped())
