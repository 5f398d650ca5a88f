// The protocol of peers for clients of Node, as line_protocol.py describes it.
// REBALANCE_LAB_NODE_MODULES names the node_modules folder that the clients are in.
import { createRequire } from "node:module";
import { join } from "node:path";
import { createInterface } from "node:readline";

const READY = 0;

export const fromModules = createRequire(join(process.env.REBALANCE_LAB_NODE_MODULES, "-"));

export const key = (topic, partition) => JSON.stringify([topic, partition]);
export const pairs = (byTopic) =>
  Object.entries(byTopic).flatMap(([topic, numbers]) => numbers.map((number) => [topic, number]));
export const inOrder = (rows) => rows.sort(([a, m], [b, n]) => (a === b ? m - n : a < b ? -1 : 1));
export const tell = (wrong) => `${wrong.name}: ${wrong.message}`;
export const toStderr = (...parts) => process.stderr.write(`${parts.join(" ")}\n`);

// What a client reports of itself: its assignment, records, events and errors since they were last asked for.
export class Notes {
  assignment = [];
  memberId = null;
  generation = null;
  consumed = 0;
  positions = new Map();
  records = [];
  events = [];
  errors = [];

  giveUp(event) {
    if (this.assignment.length > 0) this.events.push({ event, partitions: this.assignment });
    this.assignment = [];
    this.generation = null;
  }

  take(memberId, assignment) {
    this.giveUp("lost"); // it joins anew without a word when the group does not know it any more
    this.memberId = memberId;
    this.assignment = inOrder(assignment);
    for (const [topic, partition] of this.assignment) this.positions.delete(key(topic, partition));
    this.events.push({ event: "assigned", partitions: this.assignment });
  }

  record(topic, partition, offset, value) {
    this.consumed += 1;
    this.positions.set(key(topic, partition), offset + 1);
    this.records.push([topic, partition, offset, value.toString()]);
  }

  // The positions of its own partitions that it has consumed from: [topic, partition, offset].
  reached() {
    return this.assignment
      .filter(([topic, partition]) => this.positions.has(key(topic, partition)))
      .map(([topic, partition]) => [topic, partition, this.positions.get(key(topic, partition))]);
  }

  taken(name) {
    const taken = this[name];
    this[name] = [];
    return { [name]: taken };
  }
}

async function answered(member, notes, command) {
  if (command.do === "close") {
    await member.close();
    const rest = { ...notes.taken("records"), ...notes.taken("events"), ...notes.taken("errors") };
    return { closed: true, count: notes.consumed, ...rest };
  }
  if (command.do === "errors") return notes.taken("errors");
  if (notes.errors.length > 0) return { error: notes.taken("errors").errors.join("; ") };
  const { assignment, memberId, generation } = notes;
  switch (command.do) {
    case "assignment":
      return { assignment, member_id: memberId, generation };
    case "records":
      return { count: notes.consumed, ...notes.taken("records") };
    case "events":
      return notes.taken("events");
    case "commit": {
      const reached = notes.reached();
      await member.commit(reached);
      return committed(member, reached);
    }
    case "committed":
      return committed(member, command.partitions ?? assignment);
    default:
      return { error: `there is no command "${command.do}"` };
  }
}

// `found` has offsets by key(topic, partition); -1 and none at all are both no offset.
async function committed(member, partitions) {
  if (partitions.length === 0) return { committed: [] };
  const found = await member.committed(partitions);
  const offsetOf = (topic, number) => {
    const offset = found.get(key(topic, number)) ?? -1;
    return offset < 0 ? null : offset;
  };
  return { committed: inOrder(partitions.map(([topic, number]) => [topic, number, offsetOf(topic, number)])) };
}

const send = (id, answer) =>
  new Promise((sent) => process.stdout.write(`${JSON.stringify({ id, ...answer })}\n`, sent));

async function run(begin) {
  const commands = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
  const next = async () => {
    const { value, done } = await commands.next();
    return done ? { do: "close", id: null } : JSON.parse(value);
  };
  let answer;
  try {
    answer = await begin(await next());
  } catch (wrong) {
    await send(READY, { error: tell(wrong) });
    return;
  }
  await send(READY, { ready: true });
  for (let command = await next(); ; command = await next()) {
    let answers;
    try {
      answers = await answer(command);
    } catch (wrong) {
      process.stderr.write(`${wrong.stack}\n`);
      answers = { error: tell(wrong) };
    }
    await send(command.id, answers);
    if (command.do === "close") return;
  }
}

// Runs a member of a group: `make` takes the options and the notes, and returns an object with join(),
// commit(reached), committed(partitions) and close().
export async function runMember(make) {
  await run(async (options) => {
    if (options.instance_id) throw new Error("this peer has no static membership");
    const notes = new Notes();
    const member = make(options, notes);
    await member.join();
    return (command) => answered(member, notes, command);
  });
  process.exit(0);
}

// Runs a client outside of groups: every command is a method of the object that `make` returns.
export async function runTool(make) {
  await run(async ({ bootstrap }) => {
    const tool = await make(bootstrap);
    return async ({ do: name, id, ...options }) => (await tool[name](options)) ?? {};
  });
  process.exit(0);
}
