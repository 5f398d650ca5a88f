"""Where the tests find the repository and its data."""

import os
import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
DATA = ROOT / "tests" / "data"
SCENARIOS = DATA / "scenarios"
MENTIONS = SCENARIOS / "mentions_one_day.csv"

NODE_MODULES = "REBALANCE_LAB_NODE_MODULES"
"""Names the folder of Node packages: clients of Kafka, and tools of the widget's drawing."""

_PLACE = re.compile(r" \([^() ]+\.py:\d+\)")


def node_modules() -> Path:
    return Path(os.environ.get(NODE_MODULES) or ROOT / "node_modules").absolute()


def placeless(text: str) -> str:
    """Leave out the file and the line of an author's exception, of which there must be one."""
    without, count = _PLACE.subn("", text)
    assert count == 1, text
    return without
