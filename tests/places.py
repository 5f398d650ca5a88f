"""Where the tests find the repository and its data."""

from pathlib import Path

ROOT = Path(__file__).parents[1]
DATA = ROOT / "tests" / "data"
SCENARIOS = DATA / "scenarios"
MENTIONS = SCENARIOS / "mentions_one_day.csv"
