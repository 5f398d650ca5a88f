"""The story of a run as lines of text: every round with its members, or one line for each round."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any, NamedTuple

from rich.console import Console
from rich.text import Text

from coordinator_core.protocol.events import PartitionMap
from coordinator_core.protocol.partition_maps import difference, intersection
from coordinator_core.reading.partitions import listed
from rebalance_lab.simulation.world.exchange import Exchange
from rebalance_lab.traces.entries import Entry, InitialGroup, MemberRound, Occurrence, Round
from rebalance_lab.traces.rounds import entries, rounds_and_rest
from rebalance_lab.traces.trace import Trace
from rebalance_lab.verdicts.finding import Finding, found
from rebalance_lab.verdicts.messages import is_quiet, kind_of, together
from rebalance_lab.verdicts.words import (
    MOST_NAMES,
    NOTABLE_MS,
    about,
    clock,
    counted,
    exact,
    in_order,
    listed_names,
    waits,
)

_INDENT = " " * 14
_LEAST_WIDTH = 20
_MOST_ALIKE = 3
"""More members than this share a line if they keep or get back all that they had."""

_MOST_ROWS = 20
"""The most members of a round that have a line of their own."""

_MOST_MESSAGES = 30
"""The most messages between two entries that are described one by one."""


class Line(NamedTuple):
    """A line. On a narrow terminal its body continues below itself, or is cut off without ``fold``."""

    prefix: Text
    body: Text
    fold: bool = True


def story(trace: Trace, exchanges: Iterable[Exchange] = ()) -> Iterator[Line]:
    """Describe a run: its rounds, what happened between them, and the messages if there are any."""
    yield from _title(trace)
    told: list[tuple[int, Entry | Exchange]] = [(_at_ms(entry), entry) for entry in entries(trace)]
    told += [(exchange.sent_ms, exchange) for exchange in exchanges]
    told.sort(key=itemgetter(0))
    for are_messages, group in groupby((item for _, item in told), key=lambda i: isinstance(i, Exchange)):
        if are_messages:
            yield from _messages([item for item in group if isinstance(item, Exchange)])
        else:
            for item in group:
                if not isinstance(item, Exchange):
                    yield from _entry(item)
    yield from _end(trace)


def _at_ms(entry: Entry) -> int:
    return entry.began_ms if isinstance(entry, Round) else entry.at_ms


def _entry(entry: Entry) -> Iterator[Line]:
    if isinstance(entry, Occurrence):
        yield _at(entry.at_ms, (entry.text, "yellow"))
    elif isinstance(entry, InitialGroup):
        yield from _initial_group(entry)
    else:
        yield from _round(entry)


def _messages(exchanges: Sequence[Exchange]) -> Iterator[Line]:
    """Describe the messages between two entries: one by one, or by kind if there are many."""
    parts = [list(group) for _, group in groupby(exchanges, key=lambda e: "" if is_quiet(e) else id(e))]
    if len(parts) > _MOST_MESSAGES:
        by_kind: dict[tuple[str, ...], list[Exchange]] = {}
        for exchange in exchanges:
            by_kind.setdefault(kind_of(exchange), []).append(exchange)
        parts = list(by_kind.values())
    for part in parts:
        style = "dim" if is_quiet(part[0]) else "yellow" if kind_of(part[0])[2] != "NONE" else ""
        until = f", until {clock(part[-1].sent_ms).strip()}" if part[-1].sent_ms > part[0].sent_ms else ""
        yield _at(part[0].sent_ms, "  ", (f"{together(part)}{until}", style))


def in_lines(trace: Trace) -> Iterator[Line]:
    """Describe a run in one line for each round."""
    title, empty = _title(trace)
    told, rest_ms = rounds_and_rest(trace)
    yield from (title, Line(Text(), Text(f"  {_costliest(told, rest_ms)}")), empty)
    rows = [_figures(entry) for entry in told]
    if rows:
        head = ("began", "gen.", "took", "moved", "stopped", "in sum", "waited for")
        widths = [max(len(row[i]) for row in (head, *rows)) for i in range(len(head))]
        yield Line(Text(_aligned(head, widths), "bold"), Text("because", "bold"), fold=False)
        for entry, row in zip(told, rows, strict=True):
            yield Line(Text(_aligned(row, widths)), Text(_cause(entry)), fold=False)
    if rest_ms >= NOTABLE_MS:
        where = "while owners paused or were away, until nobody subscribed any longer, or up to the end"
        more = (
            f"partitions stood still for {about(rest_ms)} more in sum in stops that no round ended: {where}"
        )
        yield Line(Text(), Text(more))
    yield from _end(trace)


def _costliest(told: Sequence[Round], rest_ms: int) -> Finding:
    """Return for how long partitions stopped, and in which round most of it ended."""
    most = max(told, key=lambda entry: entry.stopped_ms, default=None)
    if most is None or not most.stopped_ms:
        return found("no-stop", rounds=len(told))
    stopped = (sum(entry.stopped_ms for entry in told) + rest_ms) / 1_000
    facts = {"generation": most.number, "cause": _cause(most)}
    return found("stopped", stopped=stopped, most=most.stopped_ms / 1_000, **facts)


def print_lines(lines: Iterable[Line], console: Console) -> None:
    """Print lines, wrapped to the width of a terminal."""
    for prefix, body, fold in lines:
        line, room = prefix + body, max(console.width - prefix.cell_len, _LEAST_WIDTH)
        if console.soft_wrap or line.cell_len <= console.width:
            console.print(line)
        elif not fold:
            line.truncate(console.width, overflow="ellipsis")
            console.print(line)
        else:
            first, *rest = body.wrap(console, room)
            console.print(prefix + first)
            for part in rest:
                console.print(Text(" " * prefix.cell_len) + part)


def _title(trace: Trace) -> Iterator[Line]:
    started = trace.started
    title = f" under {started.strategy}, seed {started.seed}"
    yield Line(Text(), Text.assemble((started.scenario, "bold"), title))
    yield Line(Text(), Text())


def _end(trace: Trace) -> Iterator[Line]:
    ended, requests = trace.ended, sum(trace.ended.messages.values())
    after = clock(trace.started.duration_ms).strip()
    yield Line(Text(), Text())
    text = f"ended {ended.group_state} in generation {ended.generation} after {after}, {requests:,} requests"
    yield Line(Text(), Text(text))


def _at(at_ms: int, *parts: str | tuple[str, str]) -> Line:
    return Line(Text.assemble((clock(at_ms), "dim"), "  "), Text.assemble(*parts))


# --- a group that runs already


def _initial_group(group: InitialGroup) -> Iterator[Line]:
    rest = f" ({group.protocol}): Stable before the run began"
    yield _at(group.at_ms, (f"generation {group.generation}", "bold"), rest)
    names = {client: _name(client, group) for client in sorted(group.owned, key=in_order)}
    width = max(map(len, names.values()), default=0)
    for client, name in names.items():
        owned = group.owned[client]
        owns = Text(f"owns {listed(owned)}") if owned else Text("nothing", style="dim")
        yield Line(Text(f"{_INDENT}{name:<{width}}  "), owns)


def _name(client: str, entry: Round | InitialGroup) -> str:
    return f"{client} (leader)" if client == entry.leader else client


# --- a round


def _round(entry: Round) -> Iterator[Line]:
    yield _at(entry.began_ms, (entry.name, "bold"), f" ({entry.protocol or 'no assignor'}): ", _result(entry))
    words = [f"because {'; '.join([*dict.fromkeys(entry.causes), *_others(entry)])}"]
    words += filter(None, [reported(entry.report), _notices(entry)])
    words += [*_waited(entry), *_taken_over(entry), *_stopped(entry)]
    yield from (Line(Text(_INDENT), Text(text)) for text in words)
    yield from _rows(entry)


def _result(entry: Round) -> str | tuple[str, str]:
    if entry.aborted_ms is not None:
        return f"aborted after {exact(entry.aborted_ms - entry.began_ms)}: {entry.aborted}", "red"
    if entry.stable_ms is None:
        return f"never {entry.rest}", "red"
    return f"{entry.rest} after {exact(entry.stable_ms - entry.began_ms)}"


def _others(entry: Round) -> Iterator[str]:
    """The members that came and went beside those that the causes name."""
    named = {word for cause in entry.causes for word in re.split(r"[ ,():]+", cause)}
    joined = [name for name in entry.joined if name not in named]
    left = {name: why for name, why in entry.left.items() if name not in named or name in entry.returned}
    if joined:
        yield f"also joined: {listed_names(joined)}"
    if left:
        yield f"also left: {_with_reasons(left, entry)}"


def _waited(entry: Round) -> Iterator[str]:
    """Describe what the two phases of a round waited for: that all members join, and the assignment."""
    if entry.waited_ms is None:
        return
    parts = [joining(entry)] if entry.waited_ms >= NOTABLE_MS else []
    ended_ms = entry.aborted_ms if entry.stable_ms is None else entry.stable_ms
    assigning_ms = ended_ms - entry.began_ms - entry.waited_ms if ended_ms is not None else 0
    if assigning_ms >= NOTABLE_MS:
        what = "for the assignment of the leader" if entry.leader else "for all members to reach their shares"
        parts.append(f"{about(assigning_ms)} {what}")
    if parts:
        yield f"waited {', then '.join(parts)}"


def joining(entry: Round) -> str:
    """Describe the time until all members had joined a round: how long it was, for whom, and why.

    Of the time in which partitions stood still meanwhile it has the sum.
    """
    waited = about(entry.waited_ms or 0)
    if entry.was_empty:
        return f"{waited} for more members, as the group was empty"
    if entry.waited_for:
        waited += f" for {_with_reasons(entry.waited_for, entry)}"
    if why := waits(entry.waits):
        waited += f": {why}"
    if not entry.idle_meanwhile_ms:
        return f"{waited}, while work went on"
    return f"{waited}, while partitions stood still for {about(entry.idle_meanwhile_ms)} in sum"


def _with_reasons(members: Mapping[str, str], entry: Round) -> str:
    """List members by reason. A member that has left and is back under another id is an old one."""
    by_reason: dict[str, list[str]] = {}
    for name, why in members.items():
        is_old = name in entry.returned and entry.left[name] == why
        by_reason.setdefault(why, []).append(f"the old {name}" if is_old else name)
    return ", ".join(f"{listed_names(names)} ({why})" for why, names in by_reason.items())


def _taken_over(entry: Round) -> Iterator[str]:
    if entry.taken_over_ms is None or entry.stable_ms is None:
        return
    delay_ms = entry.taken_over_ms - entry.stable_ms
    if delay_ms >= NOTABLE_MS:
        yield f"{entry.taken_over_by} was the last to take over its assignment, {about(delay_ms)} later"


def _stopped(entry: Round) -> Iterator[str]:
    parts = [f"{counted(entry.moved, 'partition')} moved"] if entry.moved else []
    if entry.stopped:
        count = f"{entry.stopped:,}" if parts else counted(entry.stopped, "partition")
        times = f"{about(entry.stopped_ms)} in sum, {about(entry.longest_stop_ms)} at most"
        parts.append(f"{count} stood still: {times}")
    if parts:
        yield "; ".join(parts)


def _shortened(names: Sequence[str]) -> str:
    """List partitions by topic, from names like ``orders 7``."""
    topics: dict[str, list[int]] = {}
    for name in names[:MOST_NAMES]:
        topic, _, number = name.rpartition(" ")
        topics.setdefault(topic, []).append(int(number))
    more = f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else ""
    return listed(topics) + more


def _notices(entry: Round) -> str:
    """List the notices with their numbers: ``watch on the members fired (39 times)``."""
    return ", ".join(
        text if count == 1 else f"{text} ({count:,} times)" for text, count in entry.notices.items()
    )


def reported(report: Mapping[str, Any]) -> str:
    """Summarize the report of an assignor: ``found by solver, gap 0.03 %, weights: reported-rates``."""
    parts = [f"found by {report['method']}"] if "method" in report else []
    if isinstance(report.get("optimality_gap"), (int, float)):
        parts.append(f"gap {100 * report['optimality_gap']:.2g} %")
    if "delay_left_ms" in report:
        delay, left = (f"{report[name] / 1_000:g} s" for name in ("delay_ms", "delay_left_ms"))
        anew = " starts anew under a new leader" if "delay_starts_anew" in report else ""
        parts.append(f"delay {delay}{anew}, {left} left for {_shortened(report['lost'])}")
    if "weights" in report:
        parts.append(f"weights: {report['weights']}")
    return ", ".join(parts)


# --- the members of a round


class _Changes(NamedTuple):
    """The changes of a member in a round. ``back``: revoked, and assigned again. ``held``: the opposite."""

    revoked: PartitionMap
    lost: PartitionMap
    back: PartitionMap
    assigned: PartitionMap
    kept: PartitionMap
    held: PartitionMap

    @property
    def only(self) -> str:
        """The name of the only field with partitions, or ""."""
        found = [name for name, partitions in zip(self._fields, self, strict=True) if partitions]
        return found[0] if len(found) == 1 else ""


_WORDS = {
    "revoked": ("revoked", "red"),
    "lost": ("lost", "bold red"),
    "back": ("got back", ""),
    "assigned": ("assigned", "green"),
    "kept": ("kept", ""),
    "held": ("held for a time", ""),
}
_UNCHANGED = {"back": "got back all", "kept": "kept all"}


def _changes(member: MemberRound) -> _Changes:
    back = intersection(member.revoked, member.assigned)
    revoked, assigned = difference(member.revoked, back), difference(member.assigned, back)
    return _Changes(revoked, member.lost, back, assigned, member.kept, member.held)


def _rows(entry: Round) -> Iterator[Line]:
    changes = {name: _changes(entry.members[name]) for name in sorted(entry.members, key=in_order)}
    alike: dict[str, list[str]] = {}
    for name, changed in changes.items():
        if changed.only in _UNCHANGED and name != entry.leader:
            alike.setdefault(changed.only, []).append(name)
    alike = {kind: names for kind, names in alike.items() if len(names) > _MOST_ALIKE}
    folded = {name for names in alike.values() for name in names}
    rows = [
        (_name(name, entry), _described(changes[name], entry.members[name].notes))
        for name in changes
        if name not in folded
    ]
    rest = [changes[name] for name in changes if name not in folded][_MOST_ROWS:]
    rows = rows[:_MOST_ROWS]
    if rest:
        rows.append((f"{len(rest)} more", Text(f"{_summed(rest)} (--format json lists them)")))
    for kind, names in alike.items():
        count = sum(_size(getattr(changes[name], kind)) for name in names)
        rows.append(
            (f"{len(names)} members", Text(f"{_UNCHANGED[kind]} of their {counted(count, 'partition')}"))
        )
    width = max((len(name) for name, _ in rows), default=0)
    yield from (Line(Text(f"{_INDENT}{name:<{width}}  "), text) for name, text in rows)


def _described(changes: _Changes, notes: Sequence[str] = ()) -> Text:
    parts = [
        Text(f"{word} {listed(partitions)}", style)
        for (word, style), partitions in zip(_WORDS.values(), changes, strict=True)
        if partitions
    ]
    parts += map(Text, notes)
    return Text("; ").join(parts) if parts else Text("nothing", "dim")


def _summed(several: Sequence[_Changes]) -> str:
    sums = {kind: sum(_size(getattr(changes, kind)) for changes in several) for kind in _WORDS}
    return (
        "; ".join(f"{_WORDS[kind][0]} {counted(n, 'partition')}" for kind, n in sums.items() if n)
        or "nothing"
    )


def _size(partitions: PartitionMap) -> int:
    return sum(map(len, partitions.values()))


# --- one line for each round


def _figures(entry: Round) -> tuple[str, ...]:
    ended_ms = entry.aborted_ms if entry.stable_ms is None else entry.stable_ms
    names = list(entry.waited_for)
    return (
        clock(entry.began_ms),
        entry.number if entry.generation else "-",
        exact(ended_ms - entry.began_ms) if ended_ms is not None else "never",
        f"{entry.moved:,}",
        f"{entry.stopped:,}",
        about(entry.stopped_ms),
        "".join(names[:1]) + (f" +{len(names) - 1}" if len(names) > 1 else ""),
    )


def _cause(entry: Round) -> str:
    """The first cause without its reason; also why the round was aborted."""
    cause = re.sub(r" \(.*", "", entry.causes[0])
    return f"{cause}; aborted: {entry.aborted}" if entry.aborted else cause


def _aligned(cells: Sequence[str], widths: Sequence[int]) -> str:
    *figures, names = (f"{cell:>{width}}  " for cell, width in zip(cells, widths, strict=True))
    return "".join(figures) + names.strip().ljust(widths[-1] + 2)
