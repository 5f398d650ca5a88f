"""Random groups of a coordinator, as documents of ``assign``, in chains of changes.

Members join, leave and change topics, and own what they were assigned before. Topics and members have ids of
several kinds, since the assignors of Kafka's coordinators depend on them.
"""

from base64 import urlsafe_b64encode

MEMBERS = "c{}", "consumer-{:04}", "app-{}.example.org", "m{}"
TOPICS = "t{}", "topic-{:03}", "orders.{}.v1"


def chains(random, count, assignment_of):
    """Yield ``count`` documents. ``assignment_of`` returns the pairs of each member of one."""
    made = 0
    while True:
        document = fresh(random)
        for _ in range(random.choice((1, 2, 3, 4))):
            yield document
            made += 1
            if made == count:
                return
            document = changed(random, document, assignment_of(document))


def fresh(random):
    """A group that owns nothing, of few or many members, topics and partitions."""
    most, named = random.choice((3, 8, 16, 40, 120)), random.choice(TOPICS)
    topics = {
        named.format(at): {"partitions": random.randint(0, most)}
        for at in range(random.choice((1, 2, 3, 6, 14, 30)))
    }
    if random.random() < 0.5:
        for topic in topics.values():
            topic["id"] = urlsafe_b64encode(random.randbytes(16)).decode().rstrip("=")
    shape, named = random.choice(("alike", "alike", "classes", "each")), random.choice(MEMBERS)
    classes = [
        wanted(random, topics, everything=shape == "alike") for _ in range(1 if shape == "alike" else 3)
    ]
    members = [
        member(
            random, named.format(at), wanted(random, topics) if shape == "each" else random.choice(classes)
        )
        for at in range(random.choice((1, 2, 3, 5, 9, 17, 33)))
    ]
    random.shuffle(members)
    return {"topics": topics, "members": members}


def wanted(random, topics, *, everything=False):
    """Some topics or all, in any order, and now and then one that does not exist."""
    names = list(topics)
    chosen = [*(names if everything else random.sample(names, random.randint(1, len(names))))]
    chosen += ["missing"] * (random.random() < 0.1)
    random.shuffle(chosen)
    return chosen


def member(random, name, topics):
    made = {"id": name, "topics": list(topics)}
    if random.random() < 0.2:
        made["instance_id"] = f"static-{name}"
    return made


def changed(random, document, assignment):
    """The group of a document in which each member owns what it was assigned, after some changes."""
    topics = {name: dict(topic) for name, topic in document["topics"].items()}
    members = [{**each, "owned": listed(random, assignment[each["id"]])} for each in document["members"]]
    for _ in range(random.choice((1, 1, 2, 4))):
        change = random.choice(("join", "join", "leave", "leave", "grow", "other topics", "alike"))
        if change == "join":
            of_new = random.choice((wanted(random, topics), members[0]["topics"]))
            joining = member(random, f"new-{random.randrange(10**6)}", of_new)
            members.insert(random.randint(0, len(members)), joining)
        elif change == "leave" and len(members) > 1:
            members.pop(random.randrange(len(members)))
        elif change == "grow":
            topics[random.choice(list(topics))]["partitions"] += random.randint(1, 20)
        elif change == "other topics":
            random.choice(members)["topics"] = wanted(random, topics)
        else:
            of_all = wanted(random, topics, everything=True)
            for each in members:
                each["topics"] = list(of_all)
    return {"topics": topics, "members": members}


def listed(random, pairs):
    """The partitions in their order, or in any other."""
    owned = [list(pair) for pair in pairs]
    if random.random() < 0.3:
        random.shuffle(owned)
    return owned
