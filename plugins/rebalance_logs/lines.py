"""Lines as people have them: the message in its wrapping, and its time.

A message may stand in JSON (of a container, KafkaJS, Loki), in CSV, or behind the name of a pod and a second
time. The time of a message is the last one before it; those of wrappings are often late. Times without a
zone are in the zone that the caller names.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from typing import Any

_TEXTS = ("message", "msg", "log", "MESSAGE", "@message", "textPayload", "line", "event", "short_message")
_TIMES = ("timestamp", "@timestamp", "ts", "time", "asctime", "datetime", "t", "__REALTIME_TIMESTAMP")
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")

_ORIGINS = ("pod", "pod_name", "podName", "container_name", "containerName", "host", "hostname", "instance")
_NESTED = ("kubernetes", "k8s", "docker", "container")
"""Fields of JSON with the name of the process that wrote a line, and with the object that has it."""

_PREFIXES = (
    re.compile(r"^\[pod/(?P<name>[^/\]]+)/[^\]]*\] "),  # kubectl logs --prefix
    re.compile(r"^(?P<name>[\w.-]+) +\| "),  # docker compose
    re.compile(r"^(?P<name>[\w.-]*[a-z][\w.-]*) [\w.-]*[a-z][\w.-]* \[?(?=\d{4}-\d\d-\d\d|%\d\|)"),  # stern
)

_ISO = (
    r"(?P<date>\d{4}[-/]\d\d[-/]\d\d)[T ](?P<clock>\d\d:\d\d:\d\d)(?:[.,](?P<part>\d{1,9}))?"
    r"(?P<zone> ?(?:Z\b|UTC\b|[+-]\d\d:?\d\d\b))?"
)
_SYSLOG = (
    r"(?P<month>[A-Z][a-z]{2}) {1,2}(?P<day>\d{1,2}) (?P<clock2>\d\d:\d\d:\d\d)(?:[.,](?P<part2>\d{1,9}))?"
)
_EPOCH = r"(?<![\d.\w-])(?P<epoch>1\d{9})(?:\.(?P<part3>\d{1,9})|(?P<milli>\d{3}))?(?![\d\w-])"
_CLOCK = r"(?<![\d:])(?P<clock4>\d\d:\d\d:\d\d)[.,](?P<part4>\d{1,9})"
_TIME = re.compile(f"{_ISO}|{_SYSLOG}|{_EPOCH}|{_CLOCK}")
_LOGGER = re.compile(r"\s*\((?:org|kafka|io|com)[\w.$]*\)(?: ?\[[^\]]*\])?\s*$")


@dataclass(frozen=True, slots=True)
class Clock:
    """How times are read: ``zone`` is that of times without one, ``year`` and ``day`` complete short ones."""

    zone: tzinfo
    year: int
    day: str


@dataclass(frozen=True, slots=True)
class Message:
    """A message out of its wrapping. ``outer_time``: the times of the wrapping, if the message has none.

    ``origin``: the pod or the container that wrote it, if the wrapping names it.
    """

    text: str
    outer_time: str = ""
    origin: str = ""


def unwrapped(line: str) -> Message:
    """Return the message of a line, with the times and the origin in its wrappings."""
    outer: list[str] = []
    text = line
    prefixes = (form.match(line) for form in _PREFIXES)
    origin = next((found["name"] for found in prefixes if found is not None), "")
    for _ in range(4):
        start = text.find("{")
        fields = _fields(text, start)
        if fields is None:
            break
        found = next((fields[name] for name in _TEXTS if isinstance(fields.get(name), str)), None)
        if found is None:
            break
        origin = _origin(fields) or origin
        outer.append(text[:start])
        outer.extend(str(fields[name]) for name in _TIMES if name in fields)
        text = f"{found}{_others(fields)}"
    if '""' in text:
        text = text.replace('""', '"')
    return Message(_LOGGER.sub("", text.rstrip().rstrip('"')), " ".join(outer), origin)


def _origin(fields: Mapping[str, Any]) -> str:
    """Return the name of the process in the fields of JSON, "" without one."""
    nested = [fields[name] for name in _NESTED if isinstance(fields.get(name), dict)]
    named = (own[name] for own in (*nested, fields) for name in _ORIGINS if isinstance(own.get(name), str))
    return next(named, "")


def _fields(text: str, start: int) -> Mapping[str, Any] | None:
    """Return the object of JSON that begins at a place, or None if none does."""
    if start < 0 or text[start + 1 : start + 2] not in ('"', " "):
        return None
    try:
        found, _ = json.JSONDecoder().raw_decode(text, start)
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


def _others(fields: Mapping[str, Any]) -> str:
    """Return the further fields as ``name=value``, as clients with fields have no other text for them."""
    shown = (
        (name, value if isinstance(value, str) else json.dumps(value, separators=(",", ":")))
        for name, value in fields.items()
        if name not in _TEXTS and name not in _TIMES and value not in (None, "")
    )
    return "".join(f" {name}={value}" for name, value in shown)


def time_of(message: Message, until: int, clock: Clock) -> int | None:
    """Return the time of a message, in milliseconds since 1970: the last before ``until``, or None."""
    for text in (message.text[:until], message.outer_time, message.text[until:]):
        last = None
        for last in _TIME.finditer(text):  # noqa: B007 - the last one counts
            pass
        if last is not None:
            return _milliseconds(last, clock)
    return None


def without_time(text: str) -> str:
    """Return a message without the time at its beginning."""
    found = _TIME.search(text[:64])
    return (text[found.end() :] if found else text).strip(" []:\t-")


def _milliseconds(found: re.Match[str], clock: Clock) -> int | None:
    if found["epoch"]:
        part = found["milli"] or (found["part3"] or "0").ljust(3, "0")[:3]
        return int(found["epoch"]) * 1_000 + int(part)
    try:
        return _of_calendar(found, clock)
    except ValueError:
        return None


def _of_calendar(found: re.Match[str], clock: Clock) -> int:
    zone = clock.zone
    if found["date"]:
        date, hours, part = found["date"].replace("/", "-"), found["clock"], found["part"]
        zone = _zone(found["zone"], zone)
    elif found["month"]:
        month = _MONTHS.index(found["month"].lower()) + 1
        date, hours, part = f"{clock.year}-{month:02}-{int(found['day']):02}", found["clock2"], found["part2"]
    else:
        date, hours, part = clock.day, found["clock4"], found["part4"]
    at = datetime.fromisoformat(f"{date}T{hours}").replace(tzinfo=zone)
    return round(at.timestamp()) * 1_000 + int((part or "0").ljust(3, "0")[:3])


def _zone(text: str | None, default: tzinfo) -> tzinfo:
    text = (text or "").strip()
    if not text:
        return default
    return UTC if text in ("Z", "UTC") else offset(text)


def offset(text: str) -> tzinfo:
    """Return the zone of a distance from UTC: ``+02:00`` or ``+0200``."""
    minutes = int(text[1:3]) * 60 + int(text[-2:])
    return timezone(timedelta(minutes=-minutes if text[0] == "-" else minutes))
