"""The interface of a member: when a client calls it, and what the client reads from it."""

from enum import Enum

import pytest

from coordinator_core.client.member import Outlook
from coordinator_core.client.offsets import CommitResult
from coordinator_core.client.requests import NEVER
from coordinator_core.protocol import events as ev
from coordinator_core.protocol import messages as m
from coordinator_core.protocol.error_codes import ErrorCode
from tests.coordinator_core.client.bench import T0, T1, Bench


class State(Enum):
    WATCHING = "watching"


class Member:
    """A member of no known family: it takes partitions at its first poll and logs every call."""

    state, is_leader = State.WATCHING, True

    def __init__(self, core, coordinator, offsets, assignors):
        self.core, self.assignors, self.calls = core, assignors, []
        self.is_at_rest = self.may_revoke = self.may_commit = True
        self.sends_leave = self.reads_in_poll = True
        self.wants, self.poll_ms, self.deadline_ms = False, NEVER, NEVER
        self.left = None

    def poll(self, *, now_ms):
        self.calls.append("poll")
        if not self.core.subscriptions.partitions:
            self.core.generation = self.core.generation._replace(number=3, member_id="w1")
            self.core.subscriptions.assign_by_group([T0, T1])

    def outlook(self, *, now_ms):
        deadline_ms = min(self.deadline_ms, self.poll_ms if self.poll_ms > now_ms else NEVER)
        return Outlook(self.is_at_rest, deadline_ms, now_ms if self.wants else NEVER, self.reads_in_poll)

    def on_deadline(self, *, now_ms):
        self.calls.append(("on_deadline", now_ms))
        self.deadline_ms = NEVER

    def on_coordinator(self, *, now_ms):
        self.calls.append("on_coordinator")

    def on_metadata(self, *, now_ms):
        pass

    def on_commit_error(self, error, sent, *, now_ms):
        self.calls.append((error.name, sent.number))
        return CommitResult("the member's words")

    def resume(self, generation, owned, *, topics, based_on, last_response_ms):
        raise AssertionError("not resumed here")

    def leave(self, reason, left=None, *, now_ms):
        self.calls.append(reason)
        self.left = left
        return self.sends_leave


@pytest.fixture
def bench():
    return Bench(member=Member, enable_auto_commit=False)


@pytest.fixture
def member(bench):
    """The member of a consumer that owns two partitions."""
    bench.subscribe("t")
    bench.polls()
    bench.client._member.calls.clear()
    return bench.client._member


def test_a_consumer_shows_the_state_and_generation_of_its_member(bench, member):
    assert (bench.client.state, bench.client.is_leader) == (State.WATCHING, True)
    assert (bench.client.generation.number, bench.owned) == (3, [T0, T1])


def test_the_member_is_polled_only_in_a_group(bench):
    bench.call("assign", [T0])
    bench.polls()
    assert "poll" not in bench.client._member.calls
    bench.call("unsubscribe")
    bench.subscribe("t")
    bench.poll()
    assert "poll" in bench.client._member.calls


def test_responses_wait_for_a_poll_when_the_member_says_so_and_only_in_a_group(bench, member):
    assert bench.client.reads_in_poll
    member.reads_in_poll = False
    bench.call("finish_commits")
    assert not bench.client.reads_in_poll
    member.reads_in_poll = True
    bench.call("unsubscribe")
    bench.call("assign", [T0])
    assert not bench.client.reads_in_poll


def test_the_deadline_of_the_member_is_one_of_the_client(bench, member):
    member.deadline_ms = 700
    bench.call("finish_commits")
    assert bench.client.next_deadline_ms() == 700
    bench.sleep(700)
    assert member.calls == [("on_deadline", 700)]


def test_the_member_is_called_when_the_coordinator_is_found(bench, member):
    bench.disconnect()
    assert member.calls == []
    bench.sleep(0)
    assert "on_coordinator" in member.calls


def test_a_poll_is_wanted_when_the_member_wants_it(bench, member):
    member.poll_ms = 500
    bench.call("finish_commits")
    assert bench.client.next_deadline_ms() == 500
    bench.sleep(499)
    assert not bench.client.wants_poll
    member.wants = True
    bench.sleep(1)
    assert bench.client.wants_poll
    assert bench.client.next_deadline_ms() > 500


def test_a_time_without_progress_for_a_poll_is_no_longer_a_deadline(bench, member):
    member.poll_ms = 500
    bench.call("finish_commits")
    bench.sleep(500)
    assert not bench.client.wants_poll
    assert bench.client.next_deadline_ms() > 500


def test_polls_commit_only_while_the_member_is_at_rest():
    bench = Bench(member=Member)
    bench.committed = {T0: (4, 0), T1: (5, 0)}
    bench.subscribe("t")
    bench.polls()
    bench.client._member.is_at_rest = False
    bench.sleep(20_000, polling=True)
    assert bench.requests(m.OffsetCommitRequest) == []
    bench.client._member.is_at_rest = True
    bench.call("finish_commits")
    bench.sleep(20_000, polling=True)
    (commit,) = bench.requests(m.OffsetCommitRequest)
    assert (commit.generation_id, commit.member_id) == (3, "w1")


def test_the_member_decides_about_the_error_of_a_commit(bench, member):
    results = []
    bench.call("commit", {T0: 5}, callback=results.append)
    bench.refuse(m.OffsetCommitRequest, ErrorCode.ILLEGAL_GENERATION)
    bench.poll()
    assert member.calls[0] == ("ILLEGAL_GENERATION", 3)
    assert results == ["the member's words"]


@pytest.mark.parametrize(("may_revoke", "kind"), [(True, ev.Revoked), (False, ev.Lost)])
def test_close_gives_up_and_waits_until_the_member_has_left(bench, member, may_revoke, kind):
    member.may_revoke = may_revoke
    bench.close()
    (given_up,) = bench.events_of(kind)
    assert given_up.partitions == {"t": [0, 1]}
    assert member.calls == ["the consumer is being closed"]
    assert not bench.client.closed
    member.left()
    assert bench.client.closed


def test_close_ends_at_once_if_the_member_sends_nothing(bench, member):
    member.sends_leave = False
    bench.close()
    assert bench.client.closed
