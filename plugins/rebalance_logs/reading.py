"""Facts from files: logs in any mix of formats, folders, compressed files and standard input.

Lines that cannot be about a group are only counted.
"""

import codecs
import gzip
import io
import re
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, tzinfo
from importlib import import_module
from itertools import chain, islice
from pathlib import Path, PurePath
from typing import IO, Any

from coordinator_core.errors import InputError
from coordinator_core.registry.registry import Registry, default_registry
from rebalance_logs.facts import Fact, Kind, Source
from rebalance_logs.formats import LogFormat, Wording, read_format
from rebalance_logs.lines import Clock, Message, time_of, unwrapped, without_time
from rebalance_logs.partitions import assignments_of, partitions_of
from rebalance_logs.watched import FORMAT, facts_of_trace, is_trace

STANDARD_INPUT = "-"
BLOCK = 1 << 14
"""Bytes of lines that are searched at once for words about groups: most blocks of most logs have none."""

LONGEST = 1 << 20
"""Bytes of a line that are read as text. What a longer line has beyond them says nothing."""

NEEDLES = ("roup", "oordinator", "poll timeout", "member_id", "ConsumerConfig", "kafka.consumer for")
"""Words of which each line about a group has one, in the formats of this package."""

_SETTINGS = "ConsumerConfig values"
_MOST_SETTINGS = 400
_SETTING = re.compile(r"(?:^|[\s>])([a-z][a-z]+(?:\.[a-z]+)+) = ?(.*)$")
_BROKER_REASON = "; client reason: "


@dataclass(slots=True)
class LogFile:
    """A file that was read. ``lines``: how many; ``facts``: how many of them said something about a group.

    ``formats``: how many of those each program wrote. ``last_ms``: the latest time among them.
    """

    path: str
    lines: int = 0
    facts: int = 0
    formats: dict[str, int] = field(default_factory=dict)
    last_ms: int | None = None
    problem: str = ""

    @property
    def format(self) -> str:
        """The program that wrote it, or "" if no line is known."""
        return max(self.formats, key=self.formats.__getitem__) if self.formats else ""


@dataclass(slots=True)
class Logs:
    """What was read: facts in the order of the files, and the files."""

    files: list[LogFile]
    facts: list[Fact]

    @property
    def names(self) -> list[str]:
        """The name by which lines of each file are cited."""
        return file_names([file.path for file in self.files])


def read_logs(
    paths: Sequence[str],
    *,
    zone: tzinfo = UTC,
    formats: Sequence[LogFormat] | None = None,
    progress: Callable[[int], None] = lambda _: None,
) -> Logs:
    """Read all files of paths: files, folders and ``-``. ``progress`` is told how many bytes were read.

    ``formats``: those of `known_formats` by default. A file that is not text is listed with its problem.

    Raises:
        InputError: if a path does not exist or cannot be read, or a folder has no files.
        PluginError: as `known_formats`.
    """
    logs = Logs([], [])
    formats = known_formats() if formats is None else formats
    for path in files_of(paths):
        file = LogFile(str(path))
        logs.files.append(file)
        _Reader(file, len(logs.files) - 1, zone, formats).read(path, logs.facts, progress)
    return logs


def known_formats(registry: Registry | None = None) -> tuple[LogFormat, ...]:
    """Return the formats of all plugins, those of this package first. A line is of the first that knows it.

    Raises:
        PluginError: if a format cannot be imported, or is none.
    """
    registry = registry or default_registry()
    found = []
    for spec in registry.log_formats().values():
        with registry.blaming("log_formats", spec.name):
            made = spec.format
            if isinstance(made, str):
                module, _, name = made.partition(":")
                made = getattr(import_module(module), name)
            elif isinstance(made, Path):
                made = read_format(made)
            if not isinstance(made, LogFormat):
                raise TypeError(f"found {made!r}, expected a LogFormat")
            found.append(made)
    return tuple(found)


def facts_of(
    lines: Iterable[str | None], zone: tzinfo = UTC, formats: Sequence[LogFormat] | None = None
) -> Iterator[Fact]:
    """Yield what lines without a file say, in any order. Their source is file 0, and their number."""
    formats = known_formats() if formats is None else formats
    reader = _Reader(LogFile("lines"), 0, zone, formats)
    words = _needles(formats)
    for number, line in enumerate(lines, start=1):
        if line and any(word in line for word in words):
            yield from reader.facts(line, number)


def file_names(paths: Sequence[str]) -> list[str]:
    """Return the name by which lines of each file are cited: its own, or its path if others have it."""
    names = [PurePath(path).name for path in paths]
    return [name if names.count(name) == 1 else path for name, path in zip(names, paths, strict=True)]


def messages_at(paths: Sequence[str], sources: Iterable[Source]) -> dict[Source, str]:
    """Return the messages of some lines, without their wrapping and time. Those of ``-`` are gone.

    Raises:
        OSError: if a file cannot be read any more.
    """
    wanted: dict[int, set[int]] = {}
    for source in sources:
        wanted.setdefault(source.file, set()).add(source.line)
    found = {}
    for number, lines in wanted.items():
        if paths[number] == STANDARD_INPUT:
            continue
        with _opened(paths[number]) as stream:
            for line, data in enumerate(islice(stream, max(lines)), start=1):
                if line in lines:
                    text = unwrapped(data[:LONGEST].decode("utf-8", "replace")).text
                    found[Source(number, line)] = without_time(text)
    return found


def files_of(paths: Sequence[str]) -> list[str]:
    """Return the files of paths, those of folders in order of their names; hidden ones are left out.

    Raises:
        InputError: if a path does not exist, or a folder has no files.
    """
    found: dict[str, None] = {}
    for text in paths:
        path = Path(text)
        if text == STANDARD_INPUT:
            found[text] = None
        elif path.is_dir():
            files = [
                file
                for file in sorted(path.rglob("*"))
                if file.is_file() and not any(p.startswith(".") for p in file.relative_to(path).parts)
            ]
            if not files:
                raise InputError(text, "a folder without files", "logs of brokers or clients")
            found.update(dict.fromkeys(map(str, files)))
        elif path.exists():
            found[text] = None
        else:
            raise InputError(text, "no such file or folder", "logs of brokers or clients")
    return list(found)


def _needles(formats: Sequence[LogFormat]) -> list[str]:
    """Return words of which each line about a group has one: also the words of messages without `NEEDLES`."""
    found = dict.fromkeys(NEEDLES)
    for of in formats:
        always = " ".join(form.pattern for form in of.context) if of.needs_context else ""
        for wording in of.wordings:
            if not any(needle in f"{always} {wording.example}" for needle in NEEDLES):
                found[wording.words] = None
    return list(found)


class _Reader:
    """Reads one file. Group and time of a line that does not name them are those of the lines before."""

    def __init__(self, file: LogFile, number: int, zone: tzinfo, formats: Sequence[LogFormat]) -> None:
        self._file, self._number = file, number
        self._wordings = [(of, wording) for of in formats for wording in of.wordings]
        self._needles = [needle.encode() for needle in _needles(formats)]
        now = datetime.now(tz=zone)
        self._clock = Clock(zone, now.year, f"{now:%Y-%m-%d}")
        self._group = ""
        self._settings: dict[str, str] = {}
        self._settings_ms: int | None = None
        self._settings_line = self._settings_left = 0
        self._last_ms: int | None = None

    def read(self, path: str, facts: list[Fact], progress: Callable[[int], None]) -> None:
        """Read a file, and append its facts."""
        first = len(facts)
        try:
            with _opened(path) as stream:
                head = stream.peek(BLOCK)
                if is_trace(head):
                    facts.extend(self._of_trace(chain.from_iterable(self._blocks(stream, progress))))
                elif not _is_text(head):
                    self._file.problem = "a binary file"
                else:
                    for lines in self._blocks(_in_utf_8(stream, head), progress):
                        facts.extend(self._of_block(lines))
        except (OSError, EOFError, zlib.error) as error:
            self._file.problem = f"cannot be read ({getattr(error, 'strerror', None) or error})"
        except InputError as error:
            self._file.problem = str(error)
        facts.extend(self._end_of_settings())
        self._file.facts = len(facts) - first

    def _blocks(self, stream: IO[bytes], progress: Callable[[int], None]) -> Iterator[list[bytes]]:
        """Yield the lines of a file in blocks, and count them."""
        while lines := stream.readlines(BLOCK):
            self._file.lines += len(lines)
            progress(sum(map(len, lines)))
            yield lines

    def _of_block(self, lines: Sequence[bytes]) -> Iterator[Fact]:
        """Yield what the last lines of those that were read so far say."""
        if not self._settings_left and not self._may_be_of_group(b"".join(lines)):
            return
        for number, line in enumerate(lines, start=self._file.lines - len(lines) + 1):
            if self._settings_left or self._may_be_of_group(line):
                yield from self.facts(line[:LONGEST].decode("utf-8", "replace"), number)

    def _may_be_of_group(self, data: bytes) -> bool:
        return any(needle in data for needle in self._needles)

    def _of_trace(self, lines: Iterable[bytes]) -> Iterator[Fact]:
        file = self._file
        for fact in facts_of_trace(lines, self._number):
            file.formats[FORMAT] = file.formats.get(FORMAT, 0) + 1
            file.last_ms = fact.at_ms
            yield fact

    def facts(self, line: str, number: int) -> Iterator[Fact]:
        """Yield what the next line says."""
        if self._settings_left and number > self._settings_line:
            setting = _SETTING.search(line)
            if setting is not None:
                self._settings[setting[1]] = setting[2].strip()
                self._settings_left -= 1
                return
            if line.strip():
                yield from self._end_of_settings()
        if _SETTINGS in line:
            yield from self._end_of_settings()
            message = unwrapped(line)
            self._settings_ms = time_of(message, message.text.find(_SETTINGS), self._clock)
            self._settings_line, self._settings_left = number, _MOST_SETTINGS
            for part in message.text.split("\n")[1:]:
                setting = _SETTING.search(part)
                if setting is not None:
                    self._settings[setting[1]] = setting[2].strip()
            return
        fact = self._fact(line, number)
        if fact is not None:
            yield fact

    def _end_of_settings(self) -> Iterator[Fact]:
        settings, self._settings, self._settings_left = self._settings, {}, 0
        at_ms = self._settings_ms if self._settings_ms is not None else self._last_ms
        if settings and at_ms is not None and settings.get("group.id", "null") != "null":
            instance = settings.get("group.instance.id", "null")
            self._group = settings["group.id"]
            yield Fact(
                at_ms,
                Kind.SETTINGS,
                Source(self._number, self._settings_line),
                group=settings["group.id"],
                client=settings.get("client.id", ""),
                instance_id="" if instance == "null" else instance,
                settings=settings,
                library="java",
            )

    def _fact(self, line: str, number: int) -> Fact | None:
        message = unwrapped(line)
        for of, wording in self._wordings:
            if wording.words not in message.text:
                continue
            found = wording.form.search(message.text)
            if found is not None and _is_of(of, found, message.text):
                return self._stated(of, wording, found, message, number)
        return None

    def _stated(
        self, of: LogFormat, wording: Wording, found: re.Match[str], message: Message, number: int
    ) -> Fact | None:
        names = _context(of, message.text)
        names.update({name: value for name, value in found.groupdict().items() if value})
        at_ms = time_of(message, found.start(), self._clock)
        if at_ms is None:
            at_ms = self._last_ms
        if at_ms is None:
            return None
        self._last_ms = at_ms
        file = self._file
        file.last_ms = at_ms if file.last_ms is None else max(file.last_ms, at_ms)
        file.formats[of.name] = file.formats.get(of.name, 0) + 1
        group = _clean(names.get("group") or names.get("group2") or "")
        group = group or self._group
        self._group = group if of.library else self._group
        text, cause = names.get("text", ""), names.get("cause", "")
        if not of.library and wording.kind is Kind.ROUND_BEGAN:
            text = text.rstrip().rstrip(".").removesuffix(")")
            text, _, cause = text.partition(_BROKER_REASON)
        generation = names.get("generation") or names.get("old")
        return Fact(
            at_ms,
            wording.kind,
            Source(self._number, number),
            group=group,
            client=names.get("client", "") or (message.origin if of.library else ""),
            member_id=_clean(names.get("member", "")),
            instance_id=_instance(names.get("instance", "")),
            generation=int(generation) if generation else None,
            text=text.strip(),
            cause=cause.strip(),
            partitions=partitions_of(names.get("partitions", "")),
            assignments=assignments_of(names.get("assignments", "")),
            others=tuple(_listed(names.get("others", ""))),
            protocol=names.get("protocol", ""),
            library=_library(of, message.text),
        )


def _library(of: LogFormat, text: str) -> str:
    """Return the library of a line: aiokafka has the messages of kafka-python, and other loggers."""
    return "aiokafka" if of.library == "kafka-python" and "aiokafka" in text else of.library


def _is_of(of: LogFormat, found: re.Match[str], text: str) -> bool:
    """Return whether a line with a wording of a format is of that program."""
    return not of.needs_context or "client" in found.re.groupindex or bool(_context(of, text))


def _context(of: LogFormat, text: str) -> dict[str, str]:
    """Return the names that a line has for all wordings of its format."""
    found: dict[str, str] = {}
    for form in of.context:
        match = form.search(text)
        if match is not None:
            found.update({name: value for name, value in match.groupdict().items() if value})
    return found


def _clean(name: str) -> str:
    """Return a name without the quotes around it. The ids of Erlang's clients begin with a part in quotes."""
    name = name.strip().strip('"`')
    return (name.strip("'") if name.endswith("'") else name).rstrip(".,:;)")


def _instance(name: str) -> str:
    name = _clean(name.replace("Some(", "").replace("Optional[", "").rstrip("])"))
    return "" if name in ("None", "null", "<nil>", "Optional.empty") else name


def _listed(text: str) -> Iterable[str]:
    inner = text.strip().removeprefix("Set").strip("()[]. ")
    return [name for name in (part.strip(" .)]") for part in inner.split(",")) if name]


def _opened(path: str) -> Any:
    if path == STANDARD_INPUT:
        return sys.stdin.buffer
    with open(path, "rb") as file:
        packed = file.read(2) == b"\x1f\x8b"
    return gzip.open(path, "rb") if packed else open(path, "rb")


_UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


def _is_text(head: bytes) -> bool:
    """Return whether a file with these first bytes is text."""
    return head.startswith(_UTF_16) or head.count(b"\0") <= len(head) // 1000


def _in_utf_8(stream: IO[bytes], head: bytes) -> IO[bytes]:
    """Return a text in UTF-8 or UTF-16 as UTF-8."""
    if not head.startswith(_UTF_16):
        return stream
    return io.BytesIO(stream.read().decode("utf-16", "replace").encode())
