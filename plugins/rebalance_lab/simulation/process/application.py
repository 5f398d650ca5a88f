"""The application around a client: when it polls, and on which partitions it works."""

from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from random import Random

from coordinator_core.client.facade import Client
from coordinator_core.client.subscription import partition_map
from coordinator_core.model import TopicPartition
from coordinator_core.protocol import events as ev
from rebalance_lab.scenarios.application import Application as Times
from rebalance_lab.scenarios.application import Span
from rebalance_lab.simulation.process.batches import Batches
from rebalance_lab.simulation.process.clients import ClientFacts, Commits
from rebalance_lab.simulation.process.load import Load
from rebalance_lab.simulation.process.workers import Work, Worker
from rebalance_lab.simulation.world.clock import VirtualClock

_CALL = "callback"


def drawn(span: Span, random: Random) -> int:
    """Return a duration of a span in milliseconds."""
    low, high = span
    return low + (random.randrange(high - low) if high > low else 0)


class Application:
    """Polls, callbacks, the restoring of state, and the work between them.

    The application stops its worker while a callback runs, during a round in which its client hands out no
    records, and when it has ended its work; from outside it is `halted` by a pause, a freeze or a cut.
    """

    def __init__(
        self,
        client: Client,
        worker: Worker,
        times: Times,
        batches: Batches,
        facts: ClientFacts,
        habits: Callable[[], Random],
        *,
        clock: VirtualClock,
        load: Load,
        emit: Callable[[ev.Event], None],
    ) -> None:
        self.facts = facts
        self._client, self._worker, self._times, self._batches = client, worker, times, batches
        self._has_batches = bool(batches.mean_ms)
        self._habits, self._clock, self._load = habits, clock, load
        self._name, self._emit = worker.name, emit
        self._begun_ms = self._end_ms = self._called_until_ms = -1.0
        self._is_called = self._is_silent = False
        self._in_round = self._has_stopped = self._is_halted = False
        self._had_backlog = self._is_replaced = False
        """Whether it had a backlog when it last stood still; and whether others took over all its partitions
        meanwhile, and its client does not know that yet."""
        self._halted_ms = self._fetched_ms = 0
        self.following_ms: int | None = None
        """The time of the poll after the next one, if it is drawn."""
        self._handed_out: dict[TopicPartition, int] = {}
        """The offsets after the records that polls have returned, of clients that commit those."""
        self._handed_out_ms = -1
        """The end of the batch of which they are."""
        self._restoring: dict[TopicPartition, int] = {}
        self._known: dict[TopicPartition, None] = {}
        self._waiting: dict[TopicPartition, int] = {}

    # --- polls

    @property
    def called_until_ms(self) -> int:
        """The time at which the last call of the listener returns, or has returned."""
        return int(self._called_until_ms)

    @property
    def holds_heartbeats(self) -> bool:
        """Whether the listener is called, and the client sends no heartbeats before it returns."""
        return self._is_silent and self._called_until_ms > self._clock.now_ms

    def next_poll_ms(self, *, at_rest: bool = False) -> int:
        """Return when the application polls next: now, unless it is in a callback or handles a batch.

        ``at_rest``: the poll is for nothing but a commit. Then an application that keeps up with its records
        polls now, as its batches are short. The commit is early by less than a batch.
        """
        now_ms = self._clock.now_ms
        if self._called_until_ms > now_ms:
            return int(self._called_until_ms)
        if self._in_round or self._is_halted or not self._has_batches:
            return now_ms
        if self._end_ms < now_ms:
            if self._is_replaced:
                self._handle_on(now_ms)
            elif not self._worker.flows or (at_rest and self.keeps_up):
                return now_ms
            else:
                self._begun_ms = max(self._begun_ms, self._end_ms)  # the batch that is known has ended
                work = self._load.work(self._worker, now_ms=now_ms)
                self._end_ms = self._drawn_end_ms(now_ms, self._begun_ms, work)
        return int(self._end_ms)

    @cached_property
    def _random(self) -> Random:
        """The random numbers, made when they are wanted: most applications of large groups draw none."""
        return self._habits()

    def _drawn(self, span: Span) -> int:
        return span[0] if span[0] == span[1] else drawn(span, self._random)

    def _drawn_end_ms(self, at_ms: int, begun_ms: float, work: Work) -> int:
        """Draw the end of the batch that is under way at a time, after the last known poll."""
        end_ms = self._batches.end_ms(at_ms, begun_ms, work, self._random)
        return at_ms if end_ms == at_ms else int(end_ms) + 1

    @property
    def keeps_up(self) -> bool:
        """Whether it has no backlog, and none builds up at the present rates. Its batches are short then.

        In a callback it does not: polls wait for its end, even if there are no records.
        """
        now_ms = self._clock.now_ms
        return self._called_until_ms <= now_ms and self._load.keeps_up(self._worker, now_ms=now_ms)

    def may_outlast(self, interval_ms: int, until_ms: int) -> bool:
        """Return whether a batch may last for an interval, or the batch or callback under way until a time.

        The one under way may last longer than any other: it stood still during a pause.
        """
        if max(self._end_ms, self._called_until_ms) >= until_ms:
            return True
        return self._batches.longest_ms >= interval_ms and not self.keeps_up

    def hand_out(self) -> None:
        """Note the offsets that a commit has now, if they are not those of the records that are handled.

        They are those at the end of the batch under way, at the speed at its first commit: a batch of which
        less is handled in its time, as the rates or the partitions change, has no others. Or those at its
        begin, a mean batch before its end. Those of the last batch are not committed, as no poll follows.
        """
        commits, now_ms = self.facts.commits, self._clock.now_ms
        if commits is Commits.HANDLED or self.keeps_up or self._has_stopped:
            return
        end_ms, handed_out, flows = self.next_poll_ms(), self._handed_out, self._worker.flows
        if commits is Commits.BEFORE_BATCH:
            at_ms = min(now_ms, end_ms - round(self._batches.mean_ms))
            new = list(flows)
        else:
            at_ms = end_ms
            new = [p for p in flows if p not in handed_out] if end_ms == self._handed_out_ms else list(flows)
        self._handed_out_ms = end_ms
        ends = self._load.positions(self._worker, new, now_ms=now_ms, ahead_ms=at_ms - now_ms)
        for partition, offset in ends.items():
            handed_out[partition] = max(offset, handed_out.get(partition, 0))

    def left_out(self, last_poll_ms: int) -> None:
        """Note that polls were left out, the last one at a time."""
        self._begun_ms, self._end_ms = last_poll_ms, -1.0

    def poll_ahead(self, every_ms: int, before_ms: float) -> tuple[int, int]:
        """Draw the polls that follow a poll now: each ends the batch under way ``every_ms`` after the last.

        Leave out those before ``before_ms`` and before the next change of the load, all but the last one.
        Return their number, and the time of the last one that is left out.
        """
        worker, due_ms, count = self._worker, self._clock.now_ms + every_ms, 0
        drawn_ms = min(before_ms, worker.next_ms, self._load.steady_until_ms)
        if self._has_batches and self._end_ms < 0 and worker.has_backlog and due_ms < drawn_ms:
            self._end_ms = self._drawn_end_ms(due_ms, self._begun_ms, worker.work_at(due_ms))
            while (due_ms := int(self._end_ms) + every_ms) < drawn_ms:
                end_ms = self._drawn_end_ms(due_ms, self._end_ms, worker.work_at(due_ms))
                if end_ms >= before_ms:
                    self.following_ms = end_ms
                    break
                self._begun_ms, self._end_ms = self._end_ms, end_ms
                count += 1
        return count, int(self._begun_ms)

    def polled(self, *, is_at_rest: bool, took_over: bool) -> None:
        """Note a poll. The batch that it returned begins, unless the client hands out no records.

        ``is_at_rest``: whether the client is in no round now. ``took_over``: whether a round ended here.
        """
        following_ms, self.following_ms = self.following_ms, None
        self._begun_ms, self._end_ms = self._clock.now_ms, -1.0 if following_ms is None else following_ms
        self._set_in_round(not (self.facts.records_in_round or is_at_rest or took_over))

    def took(self, events: Iterable[ev.Event]) -> int:
        """Take over what the client reports, and return how long the calls of the listener take."""
        now_ms, self._is_replaced = self._clock.now_ms, False
        took_ms, refetch_ms, added = 0, 0, []
        if self._called_until_ms <= now_ms:
            self._is_silent = False
        for event in events:
            kind = type(event)
            if kind is ev.Revoked or kind is ev.Lost:
                took_ms += self._drawn(self._times.on_revoked)
                self._is_silent = self._is_silent or not self.facts.beats_in_revoked
            elif isinstance(event, ev.Assigned):
                if event.called:
                    took_ms += self._drawn(self._times.on_assigned)
                    self._is_silent = self._is_silent or not self.facts.beats_in_assigned
                every_ms = self.facts.fetches_every_ms
                if event.added:
                    self._fetched_ms = now_ms
                elif event.owned and event.called and every_ms:
                    refetch_ms = every_ms - (now_ms + took_ms - self._fetched_ms) % every_ms
                added = [p for p in self._client.partitions if p not in self._known]
                self._known = dict.fromkeys(self._client.partitions)
                self._set_in_round(False)
        if took_ms or refetch_ms:
            self._call(took_ms + refetch_ms, _CALL if took_ms else "round")
        if added:
            self._restore(added, took_ms)
        return took_ms

    def resumed(self) -> None:
        """Note the partitions of a membership that is continued: their state is there."""
        self._known = dict.fromkeys(self._client.partitions)

    # --- work

    def start(self, positions: Mapping[TopicPartition, int]) -> None:
        """Start to work on partitions from these offsets, as soon as their state is restored."""
        if not self._worker.flows:
            self._begun_ms, self._end_ms = self._clock.now_ms, -1.0
        ready = {p: offset for p, offset in positions.items() if p not in self._restoring}
        self._waiting.update((p, offset) for p, offset in positions.items() if p in self._restoring)
        for partition in ready:
            self._handed_out.pop(partition, None)
        if self.facts.commits is Commits.BEFORE_BATCH:
            self._handed_out |= ready
        if ready:
            self._load.start(self._worker, ready, now_ms=self._clock.now_ms)

    @property
    def has_work(self) -> bool:
        """Whether there are partitions that it works on, or will when their state is restored."""
        return bool(self._restoring or self._waiting) or self._load.has_partitions(self._worker)

    def gave_up(self, event: ev.Revoked | ev.Lost) -> None:
        """End the work on partitions that the client has given up."""
        if self.has_work:
            self.release(TopicPartition(t, n) for t, numbers in event.partitions.items() for n in numbers)

    def release(self, partitions: Iterable[TopicPartition]) -> None:
        """End the work on partitions.

        The batch in hand is finished. If commits have only what was handled before it, it is fetched again,
        where its partition is among them.
        """
        listed, flows, turns = list(partitions), list(self._worker.flows), self._worker.turns
        if self.facts.commits is Commits.BEFORE_BATCH and turns and not (self._has_stopped or self.keeps_up):
            now_ms = self._clock.now_ms
            if flows and flows[turns.in_hand(len(flows), now_ms)] in listed:
                self._repeat(self.next_poll_ms() - now_ms)
        for partition in listed:
            self._restoring.pop(partition, None)
            self._waiting.pop(partition, None)
            self._handed_out.pop(partition, None)
        self._load.release(self._worker, listed, now_ms=self._clock.now_ms)

    def positions(self, partitions: Iterable[TopicPartition], *, now_ms: int) -> dict[TopicPartition, int]:
        """Return the offsets to commit, of those partitions that it works on."""
        self.hand_out()
        offsets = self._load.positions(self._worker, partitions, now_ms=now_ms)
        if self.facts.commits is Commits.BEFORE_BATCH:
            if self.keeps_up:
                self._handed_out |= offsets
            return {p: self._handed_out.get(p, offset) for p, offset in offsets.items()}
        return {p: max(offset, self._handed_out.get(p, 0)) for p, offset in offsets.items()}

    def halt(self, halted: bool) -> None:
        """Stand still, or continue. A batch, a callback or a restore that stands still ends later by it."""
        now_ms = self._clock.now_ms
        if halted and not self._is_halted:
            self._halted_ms, self._had_backlog = now_ms, not self.keeps_up
            self.next_poll_ms()
        elif self._is_halted and not halted:
            stood_ms = now_ms - self._halted_ms
            if self._end_ms > self._halted_ms:
                self._end_ms += stood_ms
                self._handle_again(self._end_ms - now_ms)
                owns = bool(self._client.partitions)
                self._is_replaced = self._had_backlog and owns and not self.has_work
            if self._called_until_ms > self._halted_ms:
                self._called_until_ms += stood_ms
            for partition in self._restoring:
                self._restoring[partition] += stood_ms
            self._await_state()
        self._is_halted = halted
        self._update_work()

    def stop(self) -> None:
        """End all work. The process is about to close."""
        if self.keeps_up:
            self._handed_out.clear()
        self.hand_out()
        self._has_stopped = True
        self._update_work()

    def shut_down(self, action: Callable[[], None]) -> None:
        """Stop after the batch under way, and run an action when the application has shut down."""
        wait_ms = self.next_poll_ms() - self._clock.now_ms
        shut_down_ms = self._drawn(self._times.shut_down)
        if wait_ms:
            self._clock.after(wait_ms, lambda: self._shut_down(shut_down_ms, action))
        else:
            self._shut_down(shut_down_ms, action)

    def _shut_down(self, took_ms: int, action: Callable[[], None]) -> None:
        self.stop()
        if took_ms:
            self._report_stopped(self._client.partitions, "shut_down")
            self._clock.after(took_ms, action)
        else:
            action()

    # --- inside

    def _handle_again(self, time_ms: float) -> None:
        """Handle the rest of a batch whose partitions others have taken over while it stood still."""
        owned = len(self._client.partitions)
        if owned:
            self._repeat((1 - len(self._worker.flows) / owned) * time_ms)

    def _handle_on(self, until_ms: int) -> None:
        """Handle whole batches of the partitions of others, one after the other, up to a time."""
        self._end_ms = max(self._begun_ms, self._end_ms)
        while self._end_ms < until_ms:
            took_ms = self._batches.drawn_ms(self._random)
            self._begun_ms, self._end_ms = self._end_ms, self._end_ms + took_ms
            self._repeat(took_ms)

    def _repeat(self, time_ms: float) -> None:
        """Handle records for a time that somebody handles again."""
        if self._batches.record_ms:
            self._load.handle_again(int(time_ms / self._batches.record_ms))

    def _call(self, took_ms: int, why: str) -> None:
        self._called_until_ms = self._clock.now_ms + took_ms
        self._report_stopped(self._client.partitions, why)
        self._is_called = self._is_called or why == _CALL
        self._update_work()
        self._clock.after(took_ms, self._called)

    def _called(self) -> None:
        if self._has_stopped:
            return
        left_ms = int(self._called_until_ms) - self._clock.now_ms
        if left_ms > 0:  # it stood still meanwhile, or another call follows
            self._clock.after(left_ms, self._called)
            return
        self._begun_ms, self._end_ms = self._clock.now_ms, -1.0
        self._update_work()
        ready = (p for p in self._client.partitions if p not in self._restoring)
        self._report_started(ready, returned=self._is_called)
        self._is_called = False
        self._report_stopped(self._restoring, "restore")

    def _restore(self, added: Iterable[TopicPartition], after_ms: int) -> None:
        begins_ms = after_ms + (self._halted_ms if self._is_halted else self._clock.now_ms)
        for partition in added:
            took_ms = self._drawn(self._times.restore)
            if took_ms:
                self._restoring[partition] = begins_ms + took_ms
        if not after_ms:
            self._report_stopped(self._restoring, "restore")
        self._await_state()

    def _await_state(self) -> None:
        for until_ms in dict.fromkeys(self._restoring.values()):
            self._clock.at(until_ms, self._restored)

    def _restored(self) -> None:
        """Work on the partitions whose state is restored by now, unless the application stands still."""
        done = [p for p, until_ms in self._restoring.items() if until_ms <= self._clock.now_ms]
        if self._has_stopped or self._is_halted or not done:
            return
        for partition in done:
            del self._restoring[partition]
        self._report_started(done)
        self.start({p: self._waiting.pop(p) for p in done if p in self._waiting})

    def _set_in_round(self, in_round: bool) -> None:
        if in_round == self._in_round:
            return
        self._in_round = in_round
        self._update_work()
        if in_round:
            self._report_stopped(self._client.partitions, "round")
        else:
            self._begun_ms, self._end_ms = self._clock.now_ms, -1.0
            self._report_started(p for p in self._client.partitions if p not in self._restoring)

    def _report_stopped(self, partitions: Iterable[TopicPartition], why: str) -> None:
        listed = partition_map(partitions)
        if listed or why == _CALL:
            self._emit(ev.WorkStopped(client=self._name, partitions=listed, why=why))

    def _report_started(self, partitions: Iterable[TopicPartition], *, returned: bool = False) -> None:
        listed = partition_map(partitions)
        if listed or returned:
            self._emit(ev.WorkStarted(client=self._name, partitions=listed))

    def _update_work(self) -> None:
        called = self._called_until_ms > self._clock.now_ms
        working = not (self._is_halted or self._has_stopped or self._in_round or called)
        self._load.set_working(self._worker, working, now_ms=self._clock.now_ms)
