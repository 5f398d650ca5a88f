"""A real Apache Kafka beside the tests: its jars, and one broker on loopback."""
