"""Members that read lists of brokers and take their shares, each for itself (Apache RocketMQ)."""
