"""Random groups for the sticky assignors: chains of changes, in which members own what they got before.

Drawn are ids (hashes that collide among them), subscriptions (equal, in other orders, nested, by halves, one
topic each, with topics that do not exist, none), racks, static members, members that lag generations behind
or have forgotten theirs, and partitions that two members claim.
"""

import struct
from uuid import UUID

from coordinator_core.assigning.user_data import encode_generation, encode_ownership
from coordinator_core.model import Cluster, GroupSubscription, Partitions, Subscription, TopicInfo

COLLIDING = ["AaAa", "BBBB", "AaBB", "BBAa", "C#Aa", "C#BB", "AaC#", "BBC#"]
WORDS = [
    "orders",
    "payments.eu",
    "clicks",
    "größe",
    "\uff41",
    "\U0001f600",
    "a",
    "Q",
    "log-1",
    "log-10",
    "log-2",
]
WHAT = ["join", "join", "leave", "leave", "subscribe", "grow", "topic", "delete"]
RACKS = ["r1", "r2", "r3", "r4"]


class Chain:
    """A group that changes. `group` is as its members would send it now; `take` gives them an assignment."""

    def __init__(self, random, name):
        self.random, self.is_eager = random, name == "sticky"
        self.with_racks = random.random() < 0.4
        self.names = random.choice(["words", "numbers", "colliding"])
        self.topics = {}
        for _ in range(random.choice([1, 2, 3, 5, 9])):
            self.add_topic()
        self.shape = random.choice(["equal", "shuffled", "nested", "half", "single", "mixed"])
        self.unruly = random.random() < 0.3
        self.generation = random.choice([0, 1, 7, 2_000_000])
        self.members, self.owned, self.since = {}, {}, {}
        self.seen = 0
        for _ in range(random.choice([1, 2, 3, 4, 6, 10, 18, 30])):
            self.join()

    def add_topic(self):
        word = self.random.choice(WORDS)
        name = word if word not in self.topics else f"{word}-{self.random.randrange(1000)}"
        most = self.random.choice([0, 1, 3, 8, 20, 45])
        self.topics[name] = TopicInfo(count := self.random.randint(min(1, most), most), self.racks(count))

    def racks(self, count):
        if not self.with_racks or self.random.random() < 0.1:
            return None
        known = RACKS[: self.random.randint(1, 4)]
        replicas = self.random.choice([1, 1, 2, 3, len(known)])
        if self.random.random() < 0.1:
            known = [*known, "elsewhere"]
        return tuple(tuple(self.random.choices(known, k=replicas)) for _ in range(count))

    def id(self):
        self.seen += 1
        if self.names == "numbers":
            return f"consumer-{self.seen}"
        if self.names == "colliding" and self.seen <= len(COLLIDING):
            return COLLIDING[self.seen - 1]
        return f"{self.random.choice(WORDS)}-{UUID(int=self.random.getrandbits(128))}"

    def subscribed(self):
        known, random = sorted(self.topics), self.random
        shape = random.choice(["equal", "half", "single", "none"]) if self.shape == "mixed" else self.shape
        if shape == "half":
            known = [topic for topic in known if random.random() < 0.5]
        elif shape == "nested":
            known = known[: random.randint(0 if self.unruly else 1, len(known))]
        elif shape == "single":
            known = [random.choice(known)]
        elif shape == "none":
            known = []
        if shape in ("shuffled", "half"):
            random.shuffle(known)
        if random.random() < (0.2 if self.unruly else 0.01):
            known.append("not-there")
        return tuple(known)

    def join(self):
        member, random = self.id(), self.random
        rack = random.choice([None, "", *RACKS, *RACKS]) if self.with_racks else None
        instance = f"i-{random.randrange(1000)}-{self.seen}" if random.random() < 0.1 else None
        self.members[member] = self.subscribed(), rack, instance
        self.owned[member], self.since[member] = [], -1

    def change(self):
        """Let a few things happen."""
        random = self.random
        for _ in range(random.choice([0, 1, 1, 1, 2, 4])):
            members = list(self.members)
            what = random.choice(WHAT + ["disturb"] * 6 * self.unruly)
            member = random.choice(members)
            if what == "join":
                self.join()
            elif what == "leave" and len(members) > 1:
                del self.members[member], self.owned[member], self.since[member]
            elif what == "subscribe" and self.shape not in ("equal", "shuffled"):
                self.members[member] = self.subscribed(), *self.members[member][1:]
            elif what == "grow":
                topic = random.choice(list(self.topics))
                count = self.topics[topic].partitions + random.randint(1, 5)
                self.topics[topic] = TopicInfo(count, self.racks(count))
            elif what == "topic" and self.shape == "mixed":
                self.add_topic()
            elif what == "delete" and len(self.topics) > 1 and random.random() < 0.3:
                del self.topics[random.choice(list(self.topics))]
            elif what == "disturb":
                self.disturb(member, random.choice(members))

    def disturb(self, member, other):
        """Let a member lag behind, forget its generation, or claim what another one has, too."""
        what = self.random.choice(["behind", "forget", "claim", "claim"])
        if what == "behind":
            self.since[member] -= self.random.randint(0, 3)
        elif what == "forget":
            self.since[member] = -1
        else:
            claimed = [pair for pair in self.owned[other] if self.random.random() < 0.5]
            self.owned[member] = list(dict.fromkeys(self.owned[member] + claimed))

    def take(self, assignment):
        """Give members an assignment. A few do not get it, and have the old one."""
        self.generation += 1
        for member, pairs in assignment.items():
            if not (self.unruly and self.random.random() < 0.1):
                self.owned[member], self.since[member] = list(pairs), self.generation

    def group(self):
        cluster = Cluster(self.topics)
        made = {}
        for member, (topics, rack, instance) in self.members.items():
            owned = Partitions.of((t, p) for t, p in self.owned[member] if p < cluster.partition_count(t))
            since, sent, data = max(self.since[member], -1), NOTHING, None
            if self.is_eager:
                data = self.remembered(owned, since)
                since = since if not self.unruly or self.random.random() < 0.8 else -1
            else:
                sent = owned
                if self.unruly and self.random.random() < 0.3:
                    since, data = -1, encode_generation(since)
            made[member] = Subscription(topics, sent, since, rack, instance, data)
        return cluster, GroupSubscription(made)

    def remembered(self, owned, since):
        """The user data of an eager member: now and then of version 0, of another assignor, or none."""
        if since == -1 and not owned:
            return self.random.choice([None, b"", encode_ownership(owned, since)])
        data = encode_ownership(owned, since)
        if self.unruly:
            return self.random.choice([*[data] * 8, data[:-4], struct.pack(">h", -1) + data, b"other"])
        return data


NOTHING = Partitions()


def chains(random, name, count, assignment_of):
    """Yield `count` pairs of a cluster and a group. ``assignment_of`` tells what each of them is assigned."""
    made = 0
    while made < count:
        chain = Chain(random, name)
        for _ in range(random.choice([1, 2, 4, 8])):
            if made == count:
                return
            cluster, group = chain.group()
            yield cluster, group
            made += 1
            assigned = assignment_of(cluster, group)
            if isinstance(assigned, str):
                break
            chain.take(assigned)
            chain.change()
