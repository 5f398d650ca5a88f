"""The embedded broker: sockets, topics and a store around the coordinator core."""
