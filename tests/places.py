"""Where the tests find the repository and its data."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
DATA = ROOT / "tests" / "data"
SCENARIOS = DATA / "scenarios"
MENTIONS = SCENARIOS / "mentions_one_day.csv"

_PLACE = re.compile(r" \([^() ]+\.py:\d+\)")


def placeless(text: str) -> str:
    """Leave out the file and the line of an author's exception, of which there must be one."""
    without, count = _PLACE.subn("", text)
    assert count == 1, text
    return without
