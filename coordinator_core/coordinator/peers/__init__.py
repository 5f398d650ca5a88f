"""The lists of members that the brokers of RocketMQ keep, in place of a group coordinator."""
