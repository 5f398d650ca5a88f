"""A smaller document that fails in the same way: whatever can be left out is left out.

Candidates are tried in turn, large parts first, and what still fails is shrunk further (as delta debugging
does: Zeller and Hildebrandt, 2002). Each candidate has less of something, or earlier times, so that it ends.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeAlias

from coordinator_core.reading.durations import parse_duration

Document: TypeAlias = dict[str, Any]

_PLAIN: Document = {"brokers": 1, "measure": None, "network": None, "description": None}
"""Values in place of what a document need not say."""

_ROUND_MS = (10_000, 1_000, 100)


def shrink(
    document: Document, fails: Callable[[Document], bool], goes_on: Callable[[], bool] = lambda: True
) -> Document:
    """Return a document that fails and of which no part can be left out, or the smallest so far.

    ``fails``: whether a document is one of a scenario and fails in the same way. ``goes_on`` is asked before
    each try.
    """
    is_smaller = True
    while is_smaller:
        is_smaller = False
        for candidate in _candidates(document):
            if not goes_on():
                return document
            if candidate != document and fails(candidate):
                document, is_smaller = candidate, True
                break
    return document


def _candidates(document: Document) -> Iterator[Document]:
    events, members = document.get("events") or [], document["members"]
    yield from _shorter(document)
    for kept in _without_runs(events):
        yield {**document, "events": kept}
    for kept in _without_runs(members):
        yield {**document, "members": kept}
    if len(document["topics"]) > 1:
        for topic in document["topics"]:
            yield _without_topic(document, topic)
    yield from _plainer(document)
    for topic, fields in document["topics"].items():
        for smaller in _smaller_topics(fields):
            yield {**document, "topics": {**document["topics"], topic: smaller}}
    for number, member in enumerate(members):
        for smaller in _smaller_members(member):
            yield {**document, "members": [*members[:number], smaller, *members[number + 1 :]]}
    yield from _sooner(document)


def _plainer(document: Document) -> Iterator[Document]:
    """Yield the document without what it need not say: settings, faults of the network, and so on."""
    for key, value in _PLAIN.items():
        if document.get(key, value) != value:
            yield {**document, key: value} if value is not None else _without(document, key)
    for part in ("config", "network"):
        for name in document.get(part) or {}:
            yield {**document, part: _without(document[part], name)}


def _without_runs(listed: Sequence[Any]) -> Iterator[list[Any]]:
    """Yield a list without each half, without each quarter, and so on, down to single elements."""
    size = len(listed)
    while size:
        for first in range(0, len(listed), size):
            yield [*listed[:first], *listed[first + size :]]
        size //= 2


def _without(mapping: Document, key: str) -> Document:
    return {name: value for name, value in mapping.items() if name != key}


def _without_topic(document: Document, topic: str) -> Document:
    members = [
        {**member, "topics": [name for name in member["topics"] if name != topic]}
        if "topics" in member
        else member
        for member in document["members"]
    ]
    members = [member for member in members if member.get("topics", True)]
    return {**document, "topics": _without(document["topics"], topic), "members": members}


def _smaller_topics(fields: Document) -> Iterator[Document]:
    for key in ("racks", "backlog", "rate", "rates"):
        if key in fields:
            yield _without(fields, key)
    if "rates_rows" in fields:
        yield _without(_without(fields, "rates_rows"), "interval")
        if len(fields["rates_rows"]) > 1:
            yield {**fields, "rates_rows": fields["rates_rows"][:-1]}
    count = fields["partitions"]
    for fewer in dict.fromkeys((1, count // 2, count - 1)):
        if 0 < fewer < count:
            lists: Document = {key: fields[key][:fewer] for key in ("racks", "rates") if key in fields}
            if isinstance(fields.get("backlog"), list):
                lists["backlog"] = fields["backlog"][:fewer]
            if "rates_rows" in fields:
                lists["rates_rows"] = [row[:fewer] for row in fields["rates_rows"]]
            yield {**fields, "partitions": fewer, **lists}


def _smaller_members(member: Document) -> Iterator[Document]:
    for key in member:
        if key not in ("id", "topics", "topics_pattern"):
            yield _without(member, key)
    if len(member.get("topics", ())) > 1:
        for topic in member["topics"]:
            yield {**member, "topics": [name for name in member["topics"] if name != topic]}


def _shorter(document: Document) -> Iterator[Document]:
    """Yield the document with an earlier end, and without the events after it."""
    duration_ms = parse_duration(document["duration"], "duration")
    events = document.get("events") or []
    for shorter in (duration_ms // 4, duration_ms // 2, duration_ms * 7 // 8):
        if shorter:
            kept = [event for event in events if parse_duration(event["at"], "at") <= shorter]
            yield {**document, "events": kept, "duration": shorter}


def _sooner(document: Document) -> Iterator[Document]:
    """Yield the document with events that happen earlier, or at round times."""
    duration_ms = parse_duration(document["duration"], "duration")
    times = [parse_duration(event["at"], "at") for event in document.get("events") or []]
    if times:
        for less in (min(times), min(times) // 2):
            if less >= 1_000:
                yield _at_times(document, [at_ms - less for at_ms in times], duration_ms - less)
    for step_ms in _ROUND_MS:
        for number, at_ms in enumerate(times):
            if at_ms % step_ms:
                rounded = at_ms - at_ms % step_ms
                yield _at_times(document, [*times[:number], rounded, *times[number + 1 :]], duration_ms)
        if duration_ms > step_ms and duration_ms % step_ms:
            yield {**document, "duration": duration_ms - duration_ms % step_ms}


def _at_times(document: Document, times: Sequence[int], duration_ms: int) -> Document:
    events = [{**event, "at": at_ms} for event, at_ms in zip(document["events"], times, strict=True)]
    return {**document, "events": events, "duration": duration_ms}
