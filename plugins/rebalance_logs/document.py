"""A diagnosis as an object for JSON, which is a contract."""

from collections.abc import Sequence
from datetime import tzinfo

import msgspec

from rebalance_logs.causes import DiagnosedCause, Diagnosis
from rebalance_logs.groups import LoggedRound
from rebalance_logs.reading import Logs
from rebalance_logs.report import cited, not_shown, reason_of, seconds_of, written


class FileDocument(msgspec.Struct, frozen=True):
    """A file that was read. ``shift_ms`` is added to its times."""

    path: str
    format: str | None
    lines: int
    lines_used: int
    shift_ms: int
    problem: str | None


class WaitDocument(msgspec.Struct, frozen=True):
    """A member that a round waited for."""

    member: str
    seconds: float
    why: str


class RoundDocument(msgspec.Struct, frozen=True):
    """A round. ``seconds`` is None if its end is not in the logs."""

    generation: int | None
    began: str
    seconds: float | None
    reason: str
    waited_for: Sequence[WaitDocument]


class RemedyDocument(msgspec.Struct, frozen=True):
    """A setting of a client or a broker that acts on a cause, with its value."""

    setting: str
    of: str
    value: str


class CauseDocument(msgspec.Struct, frozen=True):
    """A cause with the lines that show it, as ``FILE:LINE``."""

    cause: str
    members: Sequence[str]
    generations: Sequence[int]
    stopped_partition_seconds: float | None
    confidence: str
    evidence: Sequence[str]
    remedies: Sequence[RemedyDocument]


class GroupDocument(msgspec.Struct, frozen=True):
    """A group with its rounds and causes, the most important cause first."""

    group: str
    protocol: str
    rounds: Sequence[RoundDocument]
    causes: Sequence[CauseDocument]
    not_shown: Sequence[str]


class DiagnosisDocument(msgspec.Struct, frozen=True):
    """What ``diagnose --format json`` prints."""

    groups: Sequence[GroupDocument]
    files: Sequence[FileDocument]


def as_document(
    logs: Logs, shifts: Sequence[int], diagnoses: Sequence[Diagnosis], zone: tzinfo
) -> DiagnosisDocument:
    """Return the document of diagnoses. Times are in a zone."""
    files = [
        FileDocument(f.path, f.format or None, f.lines, f.facts, shift, f.problem or None)
        for f, shift in zip(logs.files, shifts, strict=True)
    ]
    return DiagnosisDocument([_group(each, logs.names, zone) for each in diagnoses], files)


def _group(diagnosis: Diagnosis, places: Sequence[str], zone: tzinfo) -> GroupDocument:
    group = diagnosis.group
    return GroupDocument(
        group.group,
        "consumer" if group.is_consumer_protocol else "classic",
        [_round(this, zone) for this in group.rounds],
        [_cause(found, places) for found in diagnosis.causes],
        list(not_shown(diagnosis)),
    )


def _round(this: LoggedRound, zone: tzinfo) -> RoundDocument:
    return RoundDocument(
        this.generation,
        written(this.began_ms, zone),
        None if this.ended_ms is None else seconds_of(this.ended_ms - this.began_ms),
        reason_of(this),
        [WaitDocument(wait.member, wait.seconds, wait.why) for wait in this.waits],
    )


def _cause(found: DiagnosedCause, places: Sequence[str]) -> CauseDocument:
    return CauseDocument(
        str(found.cause),
        found.members,
        found.generations,
        None if found.stopped_ms is None else seconds_of(found.stopped_ms),
        str(found.confidence),
        [cited(source, places) for source in found.evidence],
        [RemedyDocument(remedy.setting, remedy.of, remedy.value) for remedy in found.remedies],
    )
