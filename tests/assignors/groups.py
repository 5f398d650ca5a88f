"""Small groups: written out in a short notation, or drawn by Hypothesis; and what their rules come to.

``t:0,1 u:3`` are the partitions 0 and 1 of t, and 3 of u. What is said here about owners and racks is
worked out from the members one by one, apart from the arrays of the program.
"""

from hypothesis import strategies as st

from coordinator_core.assigning.computing import compute_assignment
from coordinator_core.errors import AssignmentError
from coordinator_core.model import (
    Cluster,
    GroupSubscription,
    Partitions,
    Subscription,
    TopicInfo,
    TopicPartition,
)
from coordinator_core.registry.registry import default_registry

KAFKAS = ["sticky", "cooperative-sticky"]
BALANCED = ["sticky-balanced", "sticky-balanced+cooperative"]
LAWFUL = ["range", "roundrobin", *BALANCED]
NAMES = [*LAWFUL, *KAFKAS]

TOPICS = ["a", "q", "logs-2", "größe", "\uff41", "\U0001f600"]
MEMBERS = ["c1", "c2", "C3", "ü", "\uffee", "\U0001f642"]
RACKS = ["r1", "r2", "r3"]


def partitions(text):
    made = {}
    for part in text.split():
        topic, _, numbers = part.partition(":")
        made[topic] = [int(n) for n in numbers.split(",")]
    return Partitions(made)


def member(topics, owned="", generation=None, **rest):
    """A subscription; whoever owns something and does not say since when owns it since generation 1."""
    if generation is None:
        generation = 1 if owned else -1
    return Subscription(tuple(topics.split()), partitions(owned), generation, **rest)


def group(**members):
    return GroupSubscription(members)


def told(assignment):
    """Member -> its partitions in the short notation, topics in the order of the list."""
    return {
        m: " ".join(f"{t}:{','.join(map(str, numbers.tolist()))}" for t, numbers in got.by_topic().items())
        for m, got in assignment.items()
    }


def assign(name, cluster, members):
    """Return the assignment by an assignor, or by one with this name."""
    made = default_registry().assignor(name) if isinstance(name, str) else name
    return compute_assignment(made, cluster, members)


def lists_or_error(name, cluster, members):
    """Return the lists of the members, or the error where Apache Kafka's assignor raises one."""
    try:
        return listed(assign(name, cluster, members))
    except AssignmentError as error:
        return str(error)


def listed(assignment):
    return {m: list(got) for m, got in assignment.items()}


def sets(assignment):
    return {m: frozenset(got) for m, got in assignment.items()}


def fed_back(members, assignment, generation=7):
    """The group at its next join, every member owning what it was assigned."""
    return GroupSubscription(
        {m: changed(s, owned=assignment[m], generation=generation) for m, s in members.items()}
    )


def changed(subscription, **fields):
    kept = {name: getattr(subscription, name) for name in subscription.__struct_fields__}
    return Subscription(**(kept | fields))


def wanted(cluster, members):
    """The partitions that somebody subscribes to."""
    topics = {t for s in members.values() for t in s.topics}
    return {TopicPartition(t, n) for t in topics for n in range(cluster.partition_count(t))}


def claims(cluster, members):
    """Partition -> the generations of those who claim it, by member."""
    made = {}
    for name, subscription in members.items():
        for topic, number in subscription.owned:
            if 0 <= number < cluster.partition_count(topic):
                made.setdefault(TopicPartition(topic, number), {})[name] = subscription.generation
    return made


def counted_owners(cluster, members):
    """Partition -> the member whose claim counts: the newest, if it is alone and still subscribes."""
    owners = {}
    for tp, generations in claims(cluster, members).items():
        newest = [m for m, g in generations.items() if g == max(generations.values())]
        if len(newest) == 1 and tp.topic in members[newest[0]].topics:
            owners[tp] = newest[0]
    return owners


def crosses(cluster, subscription, tp):
    """Whether an owner has a rack, the partition's replicas have racks, and none is the same."""
    racks = cluster.topics[tp.topic].racks
    there = racks[tp.partition] if racks is not None else ()
    return bool(subscription.rack and there) and subscription.rack not in there


def cost(cluster, members, assignment):
    """(sum of squares, owners across racks, moves), the order of PROTOCOL 10.3."""
    owners = counted_owners(cluster, members)
    given = [(m, tp) for m, got in assignment.items() for tp in got]
    return (
        sum(len(got) ** 2 for got in assignment.values()),
        sum(crosses(cluster, members[m], tp) for m, tp in given),
        sum(owners.get(tp, m) != m for m, tp in given),
    )


@st.composite
def clusters(draw, most=5, racks=True):
    """Some topics of none to a few partitions; with racks for some, if at all."""
    with_racks = racks and draw(st.booleans())
    made = {}
    for topic in draw(st.lists(st.sampled_from(TOPICS), unique=True, max_size=4)):
        count = draw(st.integers(0, most))
        replicas = None
        if with_racks and draw(st.booleans()):
            each = st.lists(st.sampled_from(RACKS), unique=True, max_size=2).map(tuple)
            replicas = tuple(draw(st.lists(each, min_size=count, max_size=count)))
        made[topic] = TopicInfo(count, replicas)
    return Cluster(made)


@st.composite
def subscriptions(draw, topics, racks=True):
    """A member; what it owns may have gone, be of no interest to it, or be somebody else's by now."""
    pairs = st.tuples(st.sampled_from(TOPICS), st.integers(0, 5))
    owned = draw(st.lists(pairs, max_size=6))
    return Subscription(
        tuple(topics),
        Partitions.of(owned),
        draw(st.integers(-1, 3)) if owned else -1,
        rack=draw(st.sampled_from([None, "", *RACKS])) if racks else None,
    )


@st.composite
def groups(draw, most=5, least=0, alike=None, racks=True, static=True):
    """A cluster and a group on it. ``alike``: all subscribe to all topics; by chance when not given."""
    cluster = draw(clusters(racks=racks))
    topics = sorted(cluster.topics)
    alike = draw(st.booleans()) if alike is None else alike
    members = {}
    for name in draw(st.lists(st.sampled_from(MEMBERS), unique=True, min_size=least, max_size=most)):
        chosen = topics if alike else draw(st.lists(st.sampled_from(TOPICS), unique=True, max_size=4))
        members[name] = draw(subscriptions(chosen, racks))
        if static and draw(st.booleans()):
            members[name] = changed(members[name], instance_id=f"i{draw(st.integers(0, 9))}-{name}")
    return cluster, GroupSubscription(members)
