// A peer with KafkaJS.
import { fromModules, key, pairs, runMember, tell } from "./line_protocol.mjs";

const { AssignerProtocol, Kafka, PartitionAssigners, logLevel } = fromModules("kafkajs");
const { MemberAssignment, MemberMetadata } = AssignerProtocol;

// KafkaJS ships one assigner, under a name of its own; in a group with others it goes by theirs.
const roundrobin = (parts) => ({ ...PartitionAssigners.roundRobin(parts), name: "roundrobin" });

const range = ({ cluster }) => ({
  name: "range",
  version: 0,
  protocol: ({ topics }) => ({ name: "range", metadata: MemberMetadata.encode({ version: 0, topics }) }),
  async assign({ members, topics }) {
    const ids = members.map(({ memberId }) => memberId).sort();
    return ids.map((memberId, place) => {
      const assignment = {};
      for (const topic of topics) {
        const numbers = cluster.findTopicPartitionMetadata(topic).map(({ partitionId }) => partitionId);
        const mine = run(numbers.sort((a, b) => a - b), place, ids.length);
        if (mine.length > 0) assignment[topic] = mine;
      }
      return { memberId, memberAssignment: MemberAssignment.encode({ version: 0, assignment }) };
    });
  },
});

function run(numbers, place, members) {
  const each = Math.floor(numbers.length / members);
  const longer = numbers.length % members;
  const begin = each * place + Math.min(place, longer);
  return numbers.slice(begin, begin + each + (place < longer ? 1 : 0));
}

const ASSIGNERS = { range, roundrobin };

class Member {
  constructor(options, notes) {
    const assigner = ASSIGNERS[options.strategy];
    if (!assigner) throw new Error(`KafkaJS has no ${options.strategy}`);
    const kafka = new Kafka({
      brokers: [options.bootstrap],
      clientId: options.client_id,
      logLevel: logLevel.INFO,
      logCreator: () => ({ label, log }) => process.stderr.write(`${label} ${JSON.stringify(log)}\n`),
    });
    this.notes = notes;
    this.group = options.group;
    this.topics = options.topics;
    this.admin = kafka.admin();
    this.consumer = kafka.consumer({
      groupId: options.group,
      partitionAssigners: [assigner],
      sessionTimeout: options.session_timeout_ms,
      heartbeatInterval: options.heartbeat_interval_ms,
      maxWaitTimeInMs: 100,
    });
  }

  async join() {
    this.listen();
    await this.admin.connect();
    await this.consumer.connect();
    await this.consumer.subscribe({ topics: this.topics, fromBeginning: true });
    const eachMessage = async ({ topic, partition, message }) =>
      this.notes.record(topic, partition, Number(message.offset), message.value);
    // It resolves once the group is there; peers answer before that.
    this.consumer.run({ autoCommit: false, eachMessage }).catch((wrong) => this.notes.errors.push(tell(wrong)));
  }

  listen() {
    const { notes } = this;
    const { GROUP_JOIN, HEARTBEAT, REBALANCING, CRASH } = this.consumer.events;
    this.consumer.on(REBALANCING, () => notes.giveUp("revoked"));
    this.consumer.on(GROUP_JOIN, ({ payload }) => notes.take(payload.memberId, pairs(payload.memberAssignment)));
    this.consumer.on(HEARTBEAT, ({ payload }) => {
      notes.generation = payload.groupGenerationId;
    });
    this.consumer.on(CRASH, ({ payload }) => {
      notes.giveUp("lost");
      notes.errors.push(tell(payload.error));
    });
  }

  async commit(reached) {
    await this.consumer.commitOffsets(
      reached.map(([topic, partition, offset]) => ({ topic, partition, offset: String(offset) })),
    );
  }

  async committed(partitions) {
    const topics = [...new Set(partitions.map(([topic]) => topic))];
    const found = new Map();
    for (const { topic, partitions: rows } of await this.admin.fetchOffsets({ groupId: this.group, topics })) {
      for (const { partition, offset } of rows) found.set(key(topic, partition), Number(offset));
    }
    return found;
  }

  async close() {
    await this.consumer.disconnect();
    await this.admin.disconnect();
  }
}

await runMember((options, notes) => new Member(options, notes));
