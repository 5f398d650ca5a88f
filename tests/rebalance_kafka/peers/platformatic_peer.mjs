// A peer with @platformatic/kafka.
import { fromModules, inOrder, key, runMember, tell } from "./line_protocol.mjs";

const { Consumer } = fromModules("@platformatic/kafka");

const inTurn = (members, places) => {
  const mine = new Map(members.map((memberId) => [memberId, new Map()]));
  places.forEach(([topic, partition], place) => give(mine.get(members[place % members.length]), topic, partition));
  return mine;
};

const inRuns = (members, places) => {
  const mine = new Map(members.map((memberId) => [memberId, new Map()]));
  for (const topic of new Set(places.map(([name]) => name))) {
    const numbers = places.filter(([name]) => name === topic).map(([, number]) => number);
    const each = Math.floor(numbers.length / members.length);
    const longer = numbers.length % members.length;
    members.forEach((memberId, place) => {
      const begin = each * place + Math.min(place, longer);
      for (const number of numbers.slice(begin, begin + each + (place < longer ? 1 : 0)))
        give(mine.get(memberId), topic, number);
    });
  }
  return mine;
};

function give(assignments, topic, partition) {
  if (!assignments.has(topic)) assignments.set(topic, { topic, partitions: [] });
  assignments.get(topic).partitions.push(partition);
}

const STRATEGIES = { range: inRuns, roundrobin: inTurn };

const assigner = (strategy) => (_current, members, topics, metadata) => {
  const places = [...topics].flatMap((topic) =>
    Array.from({ length: metadata.topics.get(topic).partitionsCount }, (_, number) => [topic, number]),
  );
  const mine = STRATEGIES[strategy]([...members.keys()].sort(), inOrder(places));
  return [...mine].map(([memberId, assignments]) => ({ memberId, assignments }));
};

class Member {
  constructor(options, notes) {
    if (!STRATEGIES[options.strategy]) throw new Error(`@platformatic/kafka has no ${options.strategy}`);
    this.notes = notes;
    this.topics = options.topics;
    this.consumer = new Consumer({
      groupId: options.group,
      clientId: options.client_id,
      bootstrapBrokers: [options.bootstrap],
      sessionTimeout: options.session_timeout_ms,
      rebalanceTimeout: Math.max(options.session_timeout_ms, 60_000),
      heartbeatInterval: options.heartbeat_interval_ms,
      protocols: [{ name: options.strategy, version: 0 }],
      partitionAssigner: assigner(options.strategy),
      autocommit: false,
      maxWaitTime: 100,
    });
  }

  async join() {
    const { consumer, notes } = this;
    consumer.on("consumer:group:rebalance", () => notes.giveUp("revoked"));
    consumer.on("consumer:group:join", ({ memberId, generationId, assignments }) => {
      notes.take(memberId, (assignments ?? []).flatMap(({ topic, partitions }) => partitions.map((n) => [topic, n])));
      notes.generation = generationId;
    });
    consumer.on("error", (wrong) => notes.errors.push(tell(wrong)));
    // It resolves once the group is there; peers answer before that.
    consumer
      .consume({ topics: this.topics, mode: "committed", fallbackMode: "earliest", maxWaitTime: 100 })
      .then((stream) => {
        stream.on("data", ({ topic, partition, offset, value }) =>
          notes.record(topic, partition, Number(offset), value),
        );
        stream.on("error", (wrong) => notes.errors.push(tell(wrong)));
      })
      .catch((wrong) => notes.errors.push(tell(wrong)));
  }

  async commit(reached) {
    await this.consumer.commit({
      offsets: reached.map(([topic, partition, offset]) => ({
        topic,
        partition,
        offset: BigInt(offset),
        leaderEpoch: 0,
      })),
    });
  }

  async committed(partitions) {
    const topics = [...new Set(partitions.map(([topic]) => topic))].map((topic) => ({
      topic,
      partitions: partitions.filter(([name]) => name === topic).map(([, number]) => number),
    }));
    const found = new Map();
    const committed = await this.consumer.listCommittedOffsets({ topics });
    for (const { topic, partitions: numbers } of topics) {
      for (const number of numbers) found.set(key(topic, number), Number(committed.get(topic)[number]));
    }
    return found;
  }

  async close() {
    await this.consumer.close(true);
  }
}

await runMember((options, notes) => new Member(options, notes));
