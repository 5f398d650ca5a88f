"""A simulated consumer process: its client, its application, and the load that it handles."""
