// KafkaJS outside of groups: it produces and administers.
import { fromModules, runTool, toStderr } from "./line_protocol.mjs";

const { ConfigResourceTypes, Kafka, logLevel } = fromModules("kafkajs");
const DEFAULT_SOURCE = 5;

class Tool {
  constructor(bootstrap) {
    const logCreator = () => ({ label, log }) => toStderr(label, JSON.stringify(log));
    const kafka = new Kafka({ brokers: [bootstrap], logLevel: logLevel.INFO, logCreator });
    this.admin = kafka.admin();
    this.producer = kafka.producer({ idempotent: true });
    this.transactional = kafka.producer({ idempotent: true, maxInFlightRequests: 1, transactionalId: "kafkajs" });
  }

  async create({ topic, count, configs }) {
    const configEntries = Object.entries(configs).map(([name, value]) => ({ name, value }));
    await this.admin.createTopics({ topics: [{ topic, numPartitions: count, configEntries }] });
  }

  async topics() {
    return { topics: (await this.admin.listTopics()).sort() };
  }

  async grow({ topic, count }) {
    await this.admin.createPartitions({ topicPartitions: [{ topic, count }] });
  }

  async alter({ topic, configs }) {
    const configEntries = Object.entries(configs).map(([name, value]) => ({ name, value }));
    const resources = [{ type: ConfigResourceTypes.TOPIC, name: topic, configEntries }];
    await this.admin.alterConfigs({ validateOnly: false, resources });
  }

  async configs({ topic }) {
    const resources = [{ type: ConfigResourceTypes.TOPIC, name: topic }];
    const described = await this.admin.describeConfigs({ includeSynonyms: false, resources });
    const own = described.resources[0].configEntries.filter((entry) => entry.configSource !== DEFAULT_SOURCE);
    return { configs: Object.fromEntries(own.map((entry) => [entry.configName, entry.configValue])) };
  }

  async produce({ topic, partition, values }) {
    await this.producer.send({ topic, messages: values.map((value) => ({ partition, value })) });
  }

  async transact({ topic, values, commit, group, offset }) {
    await this.transactional.connect();
    const transaction = await this.transactional.transaction();
    await transaction.send({ topic, messages: values.map((value) => ({ partition: 0, value })) });
    const partitions = [{ partition: 0, offset: String(offset) }];
    await transaction.sendOffsets({ consumerGroupId: group, topics: [{ topic, partitions }] });
    await (commit ? transaction.commit() : transaction.abort());
  }

  async offsets({ topic }) {
    const offsets = await this.admin.fetchTopicOffsets(topic);
    const rows = offsets.map(({ partition, low, high }) => [partition, Number(low), Number(high)]);
    return { offsets: rows.sort(([a], [b]) => a - b) };
  }

  async delete_records({ topic, partition, before }) {
    await this.admin.deleteTopicRecords({ topic, partitions: [{ partition, offset: String(before) }] });
  }

  async groups() {
    return { groups: (await this.admin.listGroups()).groups.map(({ groupId }) => groupId).sort() };
  }

  async describe({ group }) {
    const { state, protocol, members } = (await this.admin.describeGroups([group])).groups[0];
    return { state: state.toUpperCase(), protocol, clients: members.map(({ clientId }) => clientId).sort() };
  }

  async delete_group({ group }) {
    await this.admin.deleteGroups([group]);
  }

  async delete_topic({ topic }) {
    await this.admin.deleteTopics({ topics: [topic] });
  }

  async close() {
    await this.producer.disconnect();
    await this.transactional.disconnect();
    await this.admin.disconnect();
  }
}

await runTool(async (bootstrap) => {
  const tool = new Tool(bootstrap);
  await tool.admin.connect();
  await tool.producer.connect();
  return tool;
});
