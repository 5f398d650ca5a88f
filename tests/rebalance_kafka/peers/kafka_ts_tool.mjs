// kafka-ts outside of groups: it produces, and sends the requests of administration that it has codecs for.
import { fromModules, runTool, toStderr } from "./line_protocol.mjs";

const { API, createKafkaClient, setLogger } = fromModules("kafka-ts");
const TOPIC = 2;
const DEFAULT_SOURCE = 5;
const SET = 0;
const [LATEST, EARLIEST] = [-1n, -2n];
const timeoutMs = 10_000;

const write = (level) => (message, about) => toStderr(level, message, String(about?.stack ?? ""));
setLogger(Object.fromEntries(["debug", "info", "warn", "error"].map((level) => [level, write(level)])));

class Tool {
  constructor(bootstrap) {
    const [host, port] = bootstrap.split(":");
    const kafka = createKafkaClient({ clientId: "tool", bootstrapServers: [{ host, port: Number(port) }] });
    this.cluster = kafka.createCluster();
    this.producer = kafka.createProducer({});
  }

  ask(api, request) {
    return this.cluster.sendRequest(api, request);
  }

  async create({ topic, count, configs }) {
    const listed = Object.entries(configs).map(([name, value]) => ({ name, value }));
    const topics = [{ name: topic, numPartitions: count, replicationFactor: 1, assignments: [], configs: listed }];
    await this.ask(API.CREATE_TOPICS, { topics, timeoutMs, validateOnly: false });
  }

  async described(names) {
    const topics = names && names.map((name) => ({ id: null, name }));
    const options = { allowTopicAutoCreation: false, includeTopicAuthorizedOperations: false };
    return (await this.ask(API.METADATA, { topics, ...options })).topics;
  }

  async topics() {
    return { topics: (await this.described(null)).map(({ name }) => name).sort() };
  }

  async grow({ topic, count }) {
    const topics = [{ name: topic, count, assignments: null }];
    await this.ask(API.CREATE_PARTITIONS, { topics, timeoutMs, validateOnly: false });
  }

  async alter({ topic, configs }) {
    const changes = Object.entries(configs).map(([name, value]) => ({ name, configOperation: SET, value }));
    const resources = [{ resourceType: TOPIC, resourceName: topic, configs: changes }];
    await this.ask(API.INCREMENTAL_ALTER_CONFIGS, { resources, validateOnly: false });
  }

  async configs({ topic }) {
    const resources = [{ resourceType: TOPIC, resourceName: topic, configurationKeys: null }];
    const { results } = await this.ask(API.DESCRIBE_CONFIGS, { resources, includeSynonyms: false });
    const own = results[0].configs.filter(({ configSource }) => configSource !== DEFAULT_SOURCE);
    return { configs: Object.fromEntries(own.map(({ name, value }) => [name, value])) };
  }

  async produce({ topic, partition, values }) {
    await this.producer.send(values.map((value) => ({ topic, partition, value })));
  }

  async offsets({ topic }) {
    const [{ partitions }] = await this.described([topic]);
    const numbers = partitions.map(({ partitionIndex }) => partitionIndex).sort((a, b) => a - b);
    const listed = async (timestamp) => {
      const rows = numbers.map((partitionIndex) => ({ partitionIndex, currentLeaderEpoch: -1, timestamp }));
      const request = { replicaId: -1, isolationLevel: 0, topics: [{ name: topic, partitions: rows }] };
      const { topics } = await this.ask(API.LIST_OFFSETS, request);
      return new Map(topics[0].partitions.map((row) => [row.partitionIndex, Number(row.offset)]));
    };
    const [low, high] = [await listed(EARLIEST), await listed(LATEST)];
    return { offsets: numbers.map((number) => [number, low.get(number), high.get(number)]) };
  }

  async delete_records({ topic, partition, before }) {
    const partitions = [{ partitionIndex: partition, offset: BigInt(before) }];
    await this.ask(API.DELETE_RECORDS, { topics: [{ name: topic, partitions }], timeoutMs });
  }

  async groups() {
    const { groups } = await this.ask(API.LIST_GROUPS, { statesFilter: [], typesFilter: [] });
    return { groups: groups.map(({ groupId }) => groupId).sort() };
  }

  async describe({ group }) {
    const request = { groups: [group], includeAuthorizedOperations: false };
    const absent = { groups: [{ groupState: 'Dead', protocolData: '', members: [] }] };
    const found = await this.ask(API.DESCRIBE_GROUPS, request).catch((error) => {
      if (!error.message.includes('GROUP_ID_NOT_FOUND')) throw error; // from version 6 on (KIP-1043)
      return absent;
    });
    const [{ groupState, protocolData, members }] = found.groups;
    const clients = members.map(({ clientId }) => clientId).sort();
    return { state: groupState.toUpperCase(), protocol: protocolData, clients };
  }

  async delete_group({ group }) {
    await this.ask(API.DELETE_GROUPS, { groupsNames: [group] });
  }

  async delete_topic({ topic }) {
    await this.ask(API.DELETE_TOPICS, { topics: [{ name: topic, topicId: null }], timeoutMs });
  }

  async close() {
    await this.producer.close();
    await this.cluster.disconnect();
  }
}

await runTool(async (bootstrap) => {
  const tool = new Tool(bootstrap);
  await tool.cluster.connect();
  return tool;
});
