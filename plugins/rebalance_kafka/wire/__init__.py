"""Kafka's bytes: frames, messages of every version served, record batches. Codecs are kio's."""
