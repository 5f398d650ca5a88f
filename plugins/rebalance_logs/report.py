"""A diagnosis as sentences: the answer first, then the rounds."""

from collections.abc import Iterator, Sequence
from datetime import datetime, tzinfo
from itertools import islice

from rebalance_lab.verdicts.tables import as_text
from rebalance_lab.verdicts.words import counted, listed_names
from rebalance_logs.causes import DiagnosedCause, Diagnosis
from rebalance_logs.facts import Kind, Source
from rebalance_logs.findings import Cause, Confidence
from rebalance_logs.groups import LoggedRound
from rebalance_logs.reading import LogFile
from rebalance_logs.sessions import LEAST_SESSION_MS, expiries, session_of
from rebalance_logs.unlogged import OTHERS

CAUSE_TEXTS = {
    Cause.MEMBER_JOINED: "joined",
    Cause.MEMBER_LEFT: "left",
    Cause.SESSION_EXPIRED: "ended without leaving, or its heartbeats did not arrive: its session expired",
    Cause.STOOD_STILL: "stood still for longer than its session, and came back",
    Cause.POLL_INTERVAL: "took longer than max.poll.interval.ms from one poll to the next, and left",
    Cause.SLOW_BATCH: "was waited for: its batch had to end before it joined",
    Cause.ROLLING_RESTART: "were restarted one after another",
    Cause.AUTOSCALING: "came and went for good: the group was scaled",
    Cause.SUBSCRIPTION: "changed its topics",
    Cause.METADATA: "topics or their partitions changed",
    Cause.LEADER: "asked for a round as the leader",
    Cause.NEVER_SYNCED: "joined, and never asked for its assignment",
    Cause.NO_HEARTBEAT: "joined, and never sent a heartbeat",
    Cause.INSTANCE_SHARED: "ran twice with one group.instance.id",
    Cause.FAILOVER: "another broker became the coordinator",
    Cause.UNREACHABLE: "did not reach the coordinator",
    Cause.MANY_FAILED: "failed at the same time: one cause, not many",
    Cause.INITIAL_DELAY: "the coordinator waited for more members of an empty group",
    Cause.ASSIGNOR: "asked for a round because of the assignor",
}
"""What happened, after the names of the members."""

CONFIDENCE_TEXTS = {
    Confidence.HIGH: "Sure",
    Confidence.MEDIUM: "Likely",
    Confidence.LOW: "A guess",
}

_TEXTS_OF_SEVERAL = {
    Cause.SESSION_EXPIRED: (
        "ended without leaving, or their heartbeats did not arrive: their sessions expired"
    ),
    Cause.STOOD_STILL: "stood still for longer than their sessions, and came back",
    Cause.SLOW_BATCH: "were waited for: their batches had to end before they joined",
}
_TEXTS_OF_ONE = {Cause.ROLLING_RESTART: "was restarted", Cause.AUTOSCALING: "came or went for good"}


def written(at_ms: int, zone: tzinfo) -> str:
    """Return a time as ISO 8601 in a zone, without the zone."""
    at = datetime.fromtimestamp(at_ms // 1_000, zone)
    return f"{at:%Y-%m-%dT%H:%M:%S}.{at_ms % 1_000:03}"


def cited(source: Source, places: Sequence[str]) -> str:
    """Return a line as ``FILE:LINE``."""
    return f"{places[source.file]}:{source.line}"


def reason_of(this: LoggedRound) -> str:
    """Return what began a round, in words."""
    triggers = this.triggers
    if not triggers:
        return "not shown by these logs"
    if this.was_empty and all(t.cause is Cause.MEMBER_JOINED for t in triggers):
        names = [name for trigger in triggers for name in trigger.members]
        return f"{listed_names(names)} joined the empty group"
    texts = []
    for trigger in triggers:
        if trigger.is_follow_up:
            texts.append("the next step of the round before: revoked partitions get their new owners")
        elif trigger.returns:
            texts.append(f"{listed_names(trigger.members)} came back")
        else:
            is_sure = trigger.confidence is Confidence.HIGH
            texts.append(
                _what_happened(trigger.cause, trigger.members, restarted=trigger.restarted, is_sure=is_sure)
            )
    return "; ".join(dict.fromkeys(texts))


RESTARTED = "ended without leaving, and was started again"
CAME_BACK = "ended or stood still for longer than its session, and came back"


def _what_happened(
    cause: Cause, members: Sequence[str], *, restarted: bool = False, is_sure: bool = True
) -> str:
    words = CAUSE_TEXTS[cause]
    if len(members) == 1:
        words = _TEXTS_OF_ONE.get(cause, words)
        if restarted and cause is Cause.SESSION_EXPIRED:
            words = RESTARTED if is_sure else CAME_BACK
    elif members:
        words = _TEXTS_OF_SEVERAL.get(cause, words)
    return f"{listed_names(members)} {words}" if members else words


def seconds_of(ms: int) -> float:
    """Return milliseconds as seconds."""
    return round(ms / 1_000, 3)


def not_shown(diagnosis: Diagnosis) -> Iterator[str]:
    """Yield what the logs cannot show, with the lines that would show it."""
    group = diagnosis.group
    logged = [member.name for member in group.members.values() if member.is_logged]
    missing = [member.name for member in group.members.values() if not member.is_logged]
    if not logged and diagnosis.stops:
        yield (
            "no log of a member: whose batch a round waited for; the INFO lines of the consumers would show"
            " it"
        )
    elif not logged:
        yield (
            "no log of a member: whose batch a round waited for and how long partitions stood still; the INFO"
            " lines of the consumers would show it"
        )
    elif missing:
        yield f"no log of {listed_names(missing)}: what these did is what the others and the coordinator say"
    if any(getattr(event.event, "client", "") == OTHERS for event in diagnosis.trace.events):
        yield (
            "who owned what of the members without a log: partitions that nobody else had count as theirs, so"
            " that stopped times are estimates; the leader's INFO lines would show it"
        )
    if any(this.is_look for this in group.rounds):
        yield (
            "how members ended, and why a round began: a look shows who is there; logs of the coordinator or"
            " of the members would show it"
        )
    elif not group.has_broker:
        yield (
            "no log of the coordinator: when sessions expired is worked out from the settings; the INFO lines"
            " of GroupCoordinator or GroupMetadataManager would show it"
        )
    without = [n for n in logged if not any(f.kind is Kind.SETTINGS for f in group.members[n].facts)]
    if without and len(without) == len(logged):
        java = any(group.members[name].library == "java" for name in without)
        shown = "the lines of ConsumerConfig would show them" if java else "these libraries do not log them"
        short = "".join(
            f", but {name}'s session, of {LEAST_SESSION_MS / 1_000:.0f} s and at most {most_ms / 1_000:.0f} s"
            for name, most_ms in _short_sessions(diagnosis)
        )
        yield f"no settings of the members: defaults are assumed{short}; {shown}"


def _short_sessions(diagnosis: Diagnosis) -> Iterator[tuple[str, int]]:
    """Yield the members whose session was shorter than the default, and for how long they were silent."""
    group, seen = diagnosis.group, set[str]()
    for _, trigger, member in expiries(group):
        last = member.last_before(trigger.at_ms - 1)
        if last is None or member.name in seen:
            continue
        silent_ms = trigger.at_ms - last.at_ms
        if session_of(group, member, last.at_ms, trigger.at_ms) == LEAST_SESSION_MS < silent_ms:
            seen.add(member.name)
            yield member.name, silent_ms


# --- sentences


def title(diagnosis: Diagnosis, zone: tzinfo) -> list[str]:
    """Return the parts of the title: the group, its protocol and rounds, and how long partitions stopped."""
    group = diagnosis.group
    parts = [group.group, f"{'consumer' if group.is_consumer_protocol else 'classic'} protocol"]
    if not group.rounds:
        return [*parts, "no round of it is in these logs"]
    first, last = written(diagnosis.from_ms, zone), written(diagnosis.until_ms, zone)
    cost = "how long partitions stopped is not shown"
    if diagnosis.stops or any(member.is_logged for member in group.members.values()):
        cost = f"partitions stopped for {as_text(seconds_of(diagnosis.stopped_ms))} s in sum"
    return [*parts, f"{counted(len(group.rounds), 'round')}, {first} to {last}", cost]


def sentences(diagnosis: Diagnosis, places: Sequence[str]) -> Iterator[str]:
    """Yield the answer: the causes in order of cost, each with its evidence and what to try."""
    told = [each for each in diagnosis.causes if not each.is_start] or diagnosis.causes
    for number, found in enumerate(told, start=1):
        yield f"{number}. {_headline(found, diagnosis)}"
        lines = ", ".join(cited(source, places) for source in found.evidence)
        yield f"   {CONFIDENCE_TEXTS[found.confidence]}: {lines}"
        yield from _help(found)
    for text in islice(not_shown(diagnosis), 1):
        yield f"Know  {text}"


def _help(found: DiagnosedCause) -> Iterator[str]:
    """Yield the settings that help, and what may: the cost of another assignor is not in the logs."""
    settings = [r for r in found.remedies if not r.is_assignor]
    if settings:
        both = found.cause in (Cause.SESSION_EXPIRED, Cause.ROLLING_RESTART)
        listed = (" and " if both else " or ").join(f"{r.setting}={r.value}" for r in settings)
        price = f"; the price: {found.price}" if found.price else ""
        yield f"   Try ({settings[0].of}): {listed}{price}"
    if found.in_vain:
        yield f"   {found.in_vain}"
    for remedy in found.remedies:
        if remedy.is_assignor:
            yield f"   May help, `compare` tells ({remedy.of}): {remedy.setting}={remedy.value}"


def _headline(found: DiagnosedCause, diagnosis: Diagnosis) -> str:
    where = ""
    if found.generations:
        where = f" (generation{'s' * (len(found.generations) > 1)} {_listed(found.generations)})"
    restarted = bool(found.triggers) and all(trigger.restarted for trigger in found.triggers)
    is_sure = found.confidence is Confidence.HIGH
    told = _what_happened(found.cause, found.members, restarted=restarted, is_sure=is_sure)
    text = f"{found.cause}: {told}{_returned(found)}{where}"
    if found.stopped_ms is None:
        lengths = {this.generation: this.until_ms - this.began_ms for this in diagnosis.group.rounds}
        rounds_s = seconds_of(sum(lengths.get(number, 0) for number in found.generations))
        return f"{text}: rounds of {as_text(rounds_s)} s in all; what it cost is not shown"
    total = diagnosis.stopped_ms
    share = f", {100 * found.stopped_ms / total:.0f} %" if total else ""
    return f"{text}: partitions stood still for {as_text(seconds_of(found.stopped_ms))} s{share}"


def _returned(found: DiagnosedCause) -> str:
    """Return which of several members whose sessions expired came back, if not all did."""
    back = {n for t in found.triggers if t.restarted or t.returns for n in t.members}
    names = [name for name in found.members if name in back]
    if found.cause is not Cause.SESSION_EXPIRED or not names or len(names) == len(found.members):
        return ""
    return f"; {listed_names(names)} came back"


def _listed(numbers: Sequence[int]) -> str:
    parts: list[str] = []
    for number in sorted(numbers):
        if parts and number == int(parts[-1].split("-")[-1]) + 1:
            parts[-1] = f"{parts[-1].split('-')[0]}-{number}"
        else:
            parts.append(str(number))
    return ", ".join(parts[:6]) + (f" and {len(parts) - 6} more" if len(parts) > 6 else "")


def round_lines(diagnosis: Diagnosis, zone: tzinfo) -> Iterator[str]:
    """Yield a line for each round."""
    for this in diagnosis.group.rounds:
        length = "" if this.ended_ms is None else f" {as_text(seconds_of(this.ended_ms - this.began_ms))} s"
        yield f"{written(this.began_ms, zone)} generation {this.generation}{length}: {reason_of(this)}"
        told = [
            f"{as_text(wait.seconds)} s for {_WAIT_TEXTS[wait.why].format(wait.member)}"
            for wait in this.waits
        ]
        if told:
            yield f"    waited {listed_names(told, len(told))}"


_WAIT_TEXTS = {
    "batch": "the end of {}'s batch",
    "heartbeat": "the heartbeat with which {} learnt of the round",
    "session": "the end of {}'s session",
    "callback": "{}'s callback",
    "start": "{} to start",
    "unknown": "{}, for a reason that no line shows",
}


def file_lines(files: Sequence[LogFile], shifts: Sequence[int]) -> Iterator[str]:
    """Yield how many lines of the files are about groups, and what is wrong with a file or its clock."""
    used = [file for file in files if file.facts]
    facts, lines = sum(file.facts for file in used), sum(file.lines for file in used)
    formats = listed_names(list(dict.fromkeys(file.format for file in used)))
    if used:
        yield f"{facts:,} of {counted(lines, 'line')} of {counted(len(used), 'file')} used ({formats})"
    without = [file for file in files if not file.facts and not file.problem]
    if without:
        count = counted(sum(file.lines for file in without), "line")
        yield f"nothing about a group in {count} of {listed_names([file.path for file in without])}"
    for file, shift_ms in zip(files, shifts, strict=True):
        if file.problem:
            yield f"{file.path}: {file.problem}"
        if shift_ms:
            how = "ahead" if shift_ms > 0 else "behind"
            yield f"{file.path}: its clock is {abs(shift_ms) / 1_000:g} s {how}"
