"""The consumer's side of the group protocol: a pure state machine, as the coordinator is one."""
