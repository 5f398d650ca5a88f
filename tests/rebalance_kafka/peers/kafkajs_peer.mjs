// A peer with KafkaJS. REBALANCE_LAB_NODE_MODULES names the node_modules folder that it is in.
import { createRequire } from "node:module";
import { join } from "node:path";
import { createInterface } from "node:readline";

const READY = 0;
const fromModules = createRequire(join(process.env.REBALANCE_LAB_NODE_MODULES, "-"));
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

const key = (topic, partition) => JSON.stringify([topic, partition]);
const pairs = (byTopic) =>
  Object.entries(byTopic).flatMap(([topic, numbers]) => numbers.map((number) => [topic, number]));
const inOrder = (rows) =>
  rows.sort(([a, m], [b, n]) => (a === b ? m - n : a < b ? -1 : 1));
const tell = (wrong) => `${wrong.name}: ${wrong.message}`;

class Member {
  assignment = [];
  memberId = null;
  generation = null;
  consumed = 0;
  positions = new Map();
  records = [];
  events = [];
  errors = [];

  constructor(options) {
    if (options.instance_id) throw new Error("KafkaJS has no static membership");
    const assigner = ASSIGNERS[options.strategy];
    if (!assigner) throw new Error(`KafkaJS has no ${options.strategy}`);
    const kafka = new Kafka({
      brokers: [options.bootstrap],
      clientId: options.client_id,
      logLevel: logLevel.INFO,
      logCreator: () => ({ label, log }) => process.stderr.write(`${label} ${JSON.stringify(log)}\n`),
    });
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
    // It resolves once the group is there; peers answer before that.
    this.consumer
      .run({ autoCommit: false, eachMessage: async (consumed) => this.note(consumed) })
      .catch((wrong) => this.errors.push(tell(wrong)));
  }

  listen() {
    const { GROUP_JOIN, HEARTBEAT, REBALANCING, CRASH } = this.consumer.events;
    this.consumer.on(REBALANCING, () => this.giveUp("revoked"));
    this.consumer.on(GROUP_JOIN, ({ payload }) => this.take(payload));
    this.consumer.on(HEARTBEAT, ({ payload }) => {
      this.generation = payload.groupGenerationId;
    });
    this.consumer.on(CRASH, ({ payload }) => {
      this.giveUp("lost");
      this.errors.push(tell(payload.error));
    });
  }

  giveUp(event) {
    if (this.assignment.length > 0) this.events.push({ event, partitions: this.assignment });
    this.assignment = [];
    this.generation = null;
  }

  take({ memberId, memberAssignment }) {
    this.giveUp("lost"); // it joins anew without a word when the group does not know it any more
    this.memberId = memberId;
    this.assignment = inOrder(pairs(memberAssignment));
    for (const [topic, partition] of this.assignment) this.positions.delete(key(topic, partition));
    this.events.push({ event: "assigned", partitions: this.assignment });
  }

  note({ topic, partition, message }) {
    const offset = Number(message.offset);
    this.consumed += 1;
    this.positions.set(key(topic, partition), offset + 1);
    this.records.push([topic, partition, offset, message.value.toString()]);
  }

  async committed(partitions) {
    if (partitions.length === 0) return { committed: [] };
    const topics = [...new Set(partitions.map(([topic]) => topic))];
    const found = new Map();
    for (const { topic, partitions: rows } of await this.admin.fetchOffsets({ groupId: this.group, topics })) {
      for (const { partition, offset } of rows) found.set(key(topic, partition), Number(offset));
    }
    const offsetOf = (topic, number) => {
      const offset = found.get(key(topic, number)) ?? -1;
      return offset < 0 ? null : offset;
    };
    return { committed: inOrder(partitions.map(([topic, number]) => [topic, number, offsetOf(topic, number)])) };
  }

  taken(name) {
    const taken = this[name];
    this[name] = [];
    return { [name]: taken };
  }

  async answer(command) {
    if (command.do === "close") {
      await this.consumer.disconnect();
      await this.admin.disconnect();
      const rest = { ...this.taken("records"), ...this.taken("events"), ...this.taken("errors") };
      return { closed: true, count: this.consumed, ...rest };
    }
    if (command.do === "errors") return this.taken("errors");
    if (this.errors.length > 0) return { error: this.taken("errors").errors.join("; ") };
    switch (command.do) {
      case "assignment":
        return { assignment: this.assignment, member_id: this.memberId, generation: this.generation };
      case "records":
        return { count: this.consumed, ...this.taken("records") };
      case "events":
        return this.taken("events");
      case "commit": {
        const mine = this.assignment.filter(([topic, partition]) => this.positions.has(key(topic, partition)));
        await this.consumer.commitOffsets(
          mine.map(([topic, partition]) => ({
            topic,
            partition,
            offset: String(this.positions.get(key(topic, partition))),
          })),
        );
        return this.committed(mine);
      }
      case "committed":
        return this.committed(command.partitions ?? this.assignment);
      default:
        return { error: `there is no command "${command.do}"` };
    }
  }
}

const send = (id, answer) =>
  new Promise((sent) => process.stdout.write(`${JSON.stringify({ id, ...answer })}\n`, sent));

async function main() {
  const commands = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
  const next = async () => {
    const { value, done } = await commands.next();
    return done ? { do: "close", id: null } : JSON.parse(value);
  };
  let member;
  try {
    member = new Member(await next());
    await member.join();
  } catch (wrong) {
    await send(READY, { error: tell(wrong) });
    return;
  }
  await send(READY, { ready: true });
  for (let command = await next(); ; command = await next()) {
    let answer;
    try {
      answer = await member.answer(command);
    } catch (wrong) {
      process.stderr.write(`${wrong.stack}\n`);
      answer = { error: tell(wrong) };
    }
    await send(command.id, answer);
    if (command.do === "close") return;
  }
}

await main();
process.exit(0);
