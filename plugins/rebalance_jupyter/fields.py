"""Fields of the bench that read what is typed, and refuse what they cannot read."""

from collections.abc import Callable
from typing import Any

import ipywidgets as widgets
import traitlets

from coordinator_core.errors import InputError
from coordinator_core.reading.numbers import parse_number
from rebalance_jupyter.display import alert


class NumberField(widgets.VBox):
    """A number as text. ``value`` is the last valid one; a refused text stays, with the reason below it.

    ``check(number, name)`` returns the number, or raises InputError. A browser's own field for numbers would
    read ``2.5`` as 25 where it expects a whole number.
    """

    value = traitlets.Any(None, allow_none=True)
    disabled = traitlets.Bool(False)

    def __init__(self, name: str, check: Callable[[Any, str], float]) -> None:
        self._name, self._check = name, check
        self.text = widgets.Text(description=name, continuous_update=False, layout={"width": "auto"})
        self.error = widgets.HTML()
        super().__init__([self.text, self.error])
        self.text.observe(lambda _: self._read(), "value")
        self.observe(lambda _: self._write(), "value")
        traitlets.link((self, "disabled"), (self.text, "disabled"))

    @traitlets.validate("value")
    def _valid(self, proposal: Any) -> Any:
        return self._check(proposal.value, self._name)

    def _read(self) -> None:
        try:
            value = self._check(parse_number(self.text.value, self._name), self._name)
        except InputError as error:
            kept = "" if self.value is None else f"; it is still {_written(self.value)}"
            self.error.value = alert(f"found {error.found}, expected {error.expected}{kept}")
            return
        self.error.value = ""
        self.value = value

    def _write(self) -> None:
        """Show the value, unless the text has it already."""
        try:
            shown = parse_number(self.text.value, self._name)
        except InputError:
            shown = None
        if shown != self.value:
            self.text.value = _written(self.value)
        self.error.value = ""


def _written(value: float) -> str:
    return str(int(value) if value == int(value) else value)
