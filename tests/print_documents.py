"""Print the outputs in the documents anew: ``python -m tests.print_documents [TEXT ...]``.

Each command whose document shows its output runs as it stands, and what it prints replaces what is shown. So
do the further figures of the comparison of protocols, and the table of metrics. With texts, only commands
that contain one of them run. Whoever commits it reads what has changed.
"""

import json
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from math import nan
from pathlib import Path
from tempfile import TemporaryDirectory

from rebalance_lab.verdicts.tables import as_text
from tests.documents import COMPARISON, DOCUMENTS, Command, blocks, commands
from tests.places import ROOT
from tests.test_readme import ASSIGNORS, METRICS, METRICS_HEAD, SCENARIOS, metric_rows

BIN = Path(sys.executable).parent


def working_folder(folder: Path) -> Path:
    """Make the folder in which the commands of the documents run, as the test of the documents does."""
    (folder / "tests").symlink_to(ROOT / "tests")
    (folder / "scenario.yaml").write_text(blocks(SCENARIOS, "yaml")[0].text)
    (folder / "idea.py").write_text(blocks(ASSIGNORS, "python")[0].text)
    return folder


def printed(line: str, folder: Path) -> str:
    """Run a command line, and return what it prints."""
    done = subprocess.run(
        ["bash", "-c", line],
        cwd=folder,
        env={"PATH": f"{BIN}:/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=True,
    )
    return "".join(f"{row.rstrip()}\n" for row in done.stdout.strip().splitlines())


def print_again(command: Command, folder: Path) -> None:
    """Replace the output of a command in its document."""
    new = printed(command.line, folder)
    further = further_figures(command.line, folder) if command.path == COMPARISON else None
    text = command.path.read_text()
    if further is not None:
        before, after = text.split(command.output, 1)
        section, *rest = re.split(r"(?m)^(?=## )", after, maxsplit=1)
        text = before + command.output + filled(section, further) + "".join(rest)
    command.path.write_text(text.replace(command.output, new, 1))


def further_figures(line: str, folder: Path) -> dict[str, dict[str, str]]:
    """Return the text of each figure by metric and strategy."""
    strategies = json.loads(printed(f"{line} --format json", folder))["strategies"]
    return {
        metric: {each["strategy"]: as_text(_number(each["metrics"][metric])) for each in strategies}
        for metric in strategies[0]["metrics"]
    }


def _number(value: float | None) -> float:
    return nan if value is None else value


def filled(section: str, figures: dict[str, dict[str, str]]) -> str:
    """Return a section with the cells of its table replaced. Its columns are strategies, its rows metrics."""
    lines = section.splitlines(keepends=True)
    head = next((line for line in lines if line.startswith("|")), "")
    columns = [cell.strip().strip("`") for cell in head.strip().strip("|").split("|")][1:]
    for i, line in enumerate(lines):
        first, *cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        names = re.findall(r"`([^`]+)`", first) if line.startswith("|") else []
        if names and names[0] in figures:
            cells = [figures[names[0]][column] for column in columns]
            lines[i] = f"| {' | '.join([first, *cells])} |\n"
    return "".join(lines)


def print_metrics() -> None:
    """Replace the rows of the table of metrics."""
    text = METRICS.read_text()
    before, rows = text.split(METRICS_HEAD, 1)
    METRICS.write_text("".join([before, METRICS_HEAD, *metric_rows(), "\n", rows.split("\n\n", 1)[1]]))


def main(texts: list[str]) -> None:
    """Print the outputs of the commands again, and the table of metrics."""
    print_metrics()
    shown = [c for path in DOCUMENTS for c in commands(path) if c.output]
    chosen = [c for c in shown if not texts or any(text in str(c) for text in texts)]
    by_path: dict[Path, list[Command]] = {}
    for command in chosen:
        by_path.setdefault(command.path, []).append(command)
    with TemporaryDirectory() as folder, ThreadPoolExecutor(4) as pool:
        place = working_folder(Path(folder))
        for _ in pool.map(lambda own: [print_again(command, place) for command in own], by_path.values()):
            pass


if __name__ == "__main__":
    main(sys.argv[1:])
