"""A coordinator that computes assignments, on the test bench: partitions are dealt to the members in turn."""

import pytest

from coordinator_core.coordinator.server_side import server_side_part
from coordinator_core.coordinator.server_side.group import Compute, Computed, State
from coordinator_core.model import Partitions
from coordinator_core.protocol.consumer_protocol import decode_assignment, encode_assignment
from coordinator_core.protocol.error_codes import ErrorCode
from coordinator_core.protocol.server_side import JoinRequest


def server_bench(base, **given):
    """Return a bench of a coordinator whose groups it assigns."""

    class ServerBench(base):
        def __init__(self, **given):
            self.topics, self.computed = {"t": 4, "u": 2}, []
            compute = Compute(self.existing, self.assign)
            super().__init__(parts=(server_side_part(compute),), **given)

        def existing(self, names):
            return {name: self.topics[name] for name in names if name in self.topics}

        def assign(self, members):
            self.computed.append(members)
            wanted = self.existing(dict.fromkeys(t for topics in members.values() for t in topics))
            dealt = {member: [] for member in members}
            for topic, count in wanted.items():
                takers = [member for member, topics in members.items() if topic in topics]
                for number in range(count):
                    dealt[takers[number % len(takers)]].append((topic, number))
            encoded = {m: encode_assignment(Partitions.of(given)) for m, given in dealt.items()}
            return Computed("dealing", wanted, encoded)

        def join(
            self,
            member_id="",
            *,
            topics=("t",),
            group="g",
            session_ms=10_000,
            rebalance_ms=60_000,
            client="c",
        ):
            request = JoinRequest(
                group_id=group,
                session_timeout_ms=session_ms,
                rebalance_timeout_ms=rebalance_ms,
                topics=topics,
                member_id=member_id,
            )
            return self.send(request, client)

        def stable_group(self, size=2, **given):
            """Make a Stable group. Returns the members."""
            for number in range(size):
                self.enter(client=f"c{number}", **given)
            self.until(State.STABLE)
            return list(self.group().members)

        def preparing_group(self, size=2, **given):
            """Make a group in which a newcomer has joined. Returns the members before it."""
            members = self.stable_group(size, **given)
            self.enter(client="new")
            assert self.state() is State.PREPARING
            return members

        def assigning_group(self, size=2, **given):
            """Make a group whose assignment is being written. Returns the members and their parked joins."""
            members = self.stable_group(size, **given)
            self.holding = True
            newcomer = self.enter(client="new")
            joins = [self.join(member_id) for member_id in members]
            assert self.state() is State.ASSIGNING
            return list(self.group().members), [*joins, newcomer]

        def share_in(self, request):
            """Return the partitions in the response to a join, as a text."""
            answer = self.replies[request]
            assert answer.error is ErrorCode.NONE
            return " ".join(f"{t}{n}" for t, n in sorted(decode_assignment(answer.assignment)[0]))

    return ServerBench(**given)


@pytest.fixture(name="make")
def _make(make_bench):
    return lambda **given: server_bench(make_bench, **given)


@pytest.fixture
def bench(make):
    return make()
