// @platformatic/kafka outside of groups: it produces and administers.
import { fromModules, runTool } from "./line_protocol.mjs";

const { Admin, ConfigResourceTypes, Producer, stringSerializers } = fromModules("@platformatic/kafka");
const DEFAULT_SOURCE = 5;
const SET = 0;
const [LATEST, EARLIEST] = [-1n, -2n];

class Tool {
  constructor(bootstrap) {
    const options = { clientId: "tool", bootstrapBrokers: [bootstrap] };
    this.admin = new Admin(options);
    this.producer = new Producer({ ...options, idempotent: true, serializers: stringSerializers });
  }

  async create({ topic, count, configs }) {
    const listed = Object.entries(configs).map(([name, value]) => ({ name, value }));
    await this.admin.createTopics({ topics: [topic], partitions: count, replicas: 1, configs: listed });
  }

  async topics() {
    return { topics: (await this.admin.listTopics()).sort() };
  }

  async grow({ topic, count }) {
    await this.admin.createPartitions({ topics: [{ name: topic, count }] });
  }

  async alter({ topic, configs }) {
    const changes = Object.entries(configs).map(([name, value]) => ({ name, configOperation: SET, value }));
    const resources = [{ resourceType: ConfigResourceTypes.TOPIC, resourceName: topic, configs: changes }];
    await this.admin.incrementalAlterConfigs({ resources });
  }

  async configs({ topic }) {
    const resources = [{ resourceType: ConfigResourceTypes.TOPIC, resourceName: topic }];
    const [{ configs }] = await this.admin.describeConfigs({ resources });
    const own = configs.filter(({ configSource }) => configSource !== DEFAULT_SOURCE);
    return { configs: Object.fromEntries(own.map(({ name, value }) => [name, value])) };
  }

  async produce({ topic, partition, values }) {
    await this.producer.send({ messages: values.map((value) => ({ topic, partition, value })) });
  }

  async offsets({ topic }) {
    const { topics } = await this.admin.metadata({ topics: [topic], forceUpdate: true });
    const numbers = Array.from({ length: topics.get(topic).partitionsCount }, (_, number) => number);
    const listed = async (timestamp) => {
      const partitions = numbers.map((partitionIndex) => ({ partitionIndex, timestamp }));
      const [{ partitions: rows }] = await this.admin.listOffsets({ topics: [{ name: topic, partitions }] });
      return new Map(rows.map(({ partitionIndex, offset }) => [partitionIndex, Number(offset)]));
    };
    const [low, high] = [await listed(EARLIEST), await listed(LATEST)];
    return { offsets: numbers.map((number) => [number, low.get(number), high.get(number)]) };
  }

  async delete_records({ topic, partition, before }) {
    const partitions = [{ partition, offset: BigInt(before) }];
    await this.admin.deleteRecords({ topics: [{ name: topic, partitions }] });
  }

  async groups() {
    return { groups: [...(await this.admin.listGroups()).keys()].sort() };
  }

  async describe({ group }) {
    const { state, protocol, members } = (await this.admin.describeGroups({ groups: [group] })).get(group);
    return { state: state.toUpperCase(), protocol, clients: [...members.values()].map((m) => m.clientId).sort() };
  }

  async delete_group({ group }) {
    await this.admin.deleteGroups({ groups: [group] });
  }

  async delete_topic({ topic }) {
    await this.admin.deleteTopics({ topics: [topic] });
  }

  async close() {
    await this.producer.close();
    await this.admin.close();
  }
}

await runTool((bootstrap) => new Tool(bootstrap));
