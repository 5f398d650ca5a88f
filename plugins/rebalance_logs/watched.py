"""Facts from the traces of ``watch``: who was there and who owned what at each look at a group.

A look knows no reasons, no generations and not how a member ended. It stands beside logs, which do.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace

import msgspec

from coordinator_core.errors import InputError
from coordinator_core.families.reconcile import RECONCILE
from coordinator_core.protocol import events as ev
from rebalance_logs.facts import Fact, Kind, Source

FORMAT = "rebalance-lab watch"
_BEGIN = b'"type":"RunStarted"'


def is_trace(head: bytes) -> bool:
    """Return whether a file with these first bytes is a trace."""
    return head.startswith(b'{"at_ms":') and _BEGIN in head[:64]


def facts_of_trace(lines: Iterable[bytes], file: int) -> Iterator[Fact]:
    """Yield what a trace of ``watch`` shows, up to a line that is cut off.

    Raises:
        InputError: if a line is not an event, or the trace is of a run without a time of day.
    """
    decoder = msgspec.json.Decoder(ev.TraceEvent)
    looks: _Looks | None = None
    for number, line in enumerate(lines, start=1):
        try:
            event = decoder.decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            if not line.endswith(b"\n"):
                return
            raise InputError(f"line {number}", str(error), "an event of a trace") from None
        started = event.event
        if isinstance(started, ev.RunStarted):
            if started.since_1970_ms is None:
                raise InputError("a trace", "no time of day", "one of `watch`; `explain` tells of a run")
            looks = _Looks(started, started.since_1970_ms)
        elif looks is not None:
            yield from looks.facts(event, Source(file, number))


class _Looks:
    """Follows one trace."""

    def __init__(self, started: ev.RunStarted, since_1970_ms: int) -> None:
        self._since_1970_ms = since_1970_ms
        self._is_reconciled = started.strategy.endswith(f"+{RECONCILE.name}")
        self._ids: dict[str, str] = {}
        self._instances: dict[str, str] = {}
        self._owned: dict[str, ev.PartitionMap] = {}
        self._protocol = ""

    def facts(self, event: ev.TraceEvent, source: Source) -> Iterator[Fact]:
        match event.event:
            case ev.MemberStarted(client=name, instance_id=instance):
                self._instances[name] = instance or ""
            case ev.MemberStopped(client=name):
                self._ids.pop(name, None)
                self._owned.pop(name, None)
            case ev.Joined(client=name, member_id=member_id):
                self._ids[name] = member_id
            case ev.Assigned(client=name, owned=owned):
                self._owned[name] = owned
            case ev.GenerationStarted(protocol=protocol):
                self._protocol = protocol
            case ev.GroupStateChanged() as change:
                seen = Fact(
                    self._since_1970_ms + event.at_ms,
                    Kind.ROUND_BEGAN,
                    source,
                    group=change.group,
                    generation=change.generation,
                    protocol=self._protocol,
                    is_look=True,
                )
                yield from self._of_state(change.after, seen)

    def _of_state(self, state: str, seen: Fact) -> Iterator[Fact]:
        if state == "Empty":
            yield replace(seen, kind=Kind.EMPTY)
        elif state != "Stable":
            yield replace(seen, generation=None)
        else:
            if self._is_reconciled:
                yield replace(seen, kind=Kind.EPOCH)
            for name, member_id in self._ids.items():
                yield replace(
                    seen,
                    kind=Kind.MEMBER_STATE,
                    client=name,
                    member_id=member_id,
                    instance_id=self._instances.get(name, ""),
                    partitions=self._owned.get(name, {}),
                    text="STABLE",
                )
            shares = {member_id: self._owned.get(name, {}) for name, member_id in self._ids.items()}
            yield replace(seen, kind=Kind.COMPUTED, assignments=shares)
