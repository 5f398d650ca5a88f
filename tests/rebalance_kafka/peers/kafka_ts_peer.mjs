// A peer with kafka-ts. It has one assigner, and commits each batch when it is handled.
import { fromModules, key, pairs, runMember, toStderr } from "./line_protocol.mjs";

const { API, createKafkaClient, setLogger } = fromModules("kafka-ts");
const OWN = "RoundRobinAssigner";
const BETWEEN_MS = 20;

const write = (level) => (message, about) => toStderr(level, message, String(about?.stack ?? ""));
setLogger(Object.fromEntries(["debug", "info", "warn", "error"].map((level) => [level, write(level)])));

const placeOf = (bootstrap) => {
  const [host, port] = bootstrap.split(":");
  return { host, port: Number(port) };
};

class Member {
  constructor(options, notes) {
    if (options.strategy !== OWN) throw new Error(`kafka-ts has no ${options.strategy}`);
    this.notes = notes;
    this.options = options;
    this.kafka = createKafkaClient({
      clientId: options.client_id,
      bootstrapServers: [placeOf(options.bootstrap)],
    });
    this.cluster = this.kafka.createCluster();
  }

  async join() {
    const { notes } = this;
    const { topics, group, session_timeout_ms } = this.options;
    await this.cluster.connect();
    this.consumer = await this.kafka.startConsumer({
      topics,
      groupId: group,
      sessionTimeoutMs: session_timeout_ms,
      maxWaitMs: 100,
      fromBeginning: true,
      onBatch: (messages) => {
        for (const { topic, partition, offset, value } of messages) notes.record(topic, partition, Number(offset), value);
      },
    });
    this.consumer.on("rebalanceInProgress", () => notes.giveUp("revoked"));
    this.consumer.on("heartbeat", () => this.look());
  }

  // The consumer emits no event with its assignment.
  look() {
    const { memberId, generationId } = this.consumer.consumerGroup;
    if (generationId !== this.notes.generation) this.notes.take(memberId, pairs(this.consumer.metadata.getAssignment()));
    this.notes.generation = generationId;
  }

  // Wait for the commits of the batches.
  async commit(reached) {
    for (;;) {
      const found = await this.committed(reached);
      if (reached.every(([topic, partition, offset]) => found.get(key(topic, partition)) === offset)) return;
      await new Promise((resolve) => setTimeout(resolve, BETWEEN_MS));
    }
  }

  async committed(partitions) {
    const { metadata } = this.consumer;
    const topics = [...new Set(partitions.map(([topic]) => topic))].map((name) => ({
      name,
      topicId: metadata.getTopicIdByName(name), // kafka-ts 1.5 has OffsetFetch 10, with ids in place of names
      partitionIndexes: partitions.filter(([topic]) => topic === name).map(([, number]) => number),
    }));
    const groups = [{ groupId: this.options.group, topics }];
    const answer = await this.cluster.sendRequest(API.OFFSET_FETCH, { groups, requireStable: false });
    const found = new Map();
    for (const topic of answer.groups[0].topics) {
      const name = topic.name ?? metadata.getTopicNameById(topic.topicId);
      for (const { partitionIndex, committedOffset } of topic.partitions)
        found.set(key(name, partitionIndex), Number(committedOffset));
    }
    return found;
  }

  async close() {
    await this.consumer.close();
    await this.cluster.disconnect();
  }
}

await runMember((options, notes) => new Member(options, notes));
