"""The progress of checks in the output of a notebook's cell. It disappears at the end."""

import sys
from collections.abc import Iterable, Iterator, Sequence
from html import escape
from typing import Any

from rebalance_conformance.results import Outcome, Result
from rebalance_conformance.search import Check


def in_kernel() -> bool:
    """Return whether this process is the kernel of a notebook."""
    module: Any = sys.modules.get("IPython.core.getipython")
    return module is not None and hasattr(module.get_ipython(), "kernel")


def shown(results: Iterable[Result], checks: Sequence[Check]) -> Iterator[Result]:
    """Yield results, and show the check that runs meanwhile."""
    from IPython.display import display

    first = _bundle(f"{checks[0].name}, check 1 of {len(checks)}")
    handle: Any = display(first, raw=True, display_id=True)  # type: ignore[no-untyped-call]
    failed = 0
    for number, result in enumerate(results, start=1):
        yield result
        failed += result.outcome is Outcome.FAILED
        if number < len(checks):
            text = f"{checks[number].name}, check {number + 1} of {len(checks)}, {failed} failed"
            handle.update(_bundle(text), raw=True)
    handle.update({"text/plain": "", "text/html": ""}, raw=True)


def _bundle(text: str) -> dict[str, str]:
    return {"text/plain": text, "text/html": f'<div role="status">{escape(text)}</div>'}
