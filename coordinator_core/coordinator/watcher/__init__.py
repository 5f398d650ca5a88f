"""The registry with watches of Kafka before 0.9, in place of a group coordinator."""
