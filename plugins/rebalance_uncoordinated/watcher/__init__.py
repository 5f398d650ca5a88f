"""Members that watch a registry, as Apache ZooKeeper is one, and claim their shares (Kafka before 0.9)."""
