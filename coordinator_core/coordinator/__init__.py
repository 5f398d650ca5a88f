"""The group coordinator: a pure state machine for classic consumer groups.

Where Kafka leaves a tie to a hash map, our rules are:

- equal deadlines fire in the order of `timers.TimerKind`, then group id, then member id;
- a tie of votes for an assignor goes to what the leader lists first, then to the lower name (C-07);
- "the first member", who becomes leader when the leader left or did not rejoin, is the one that has been
  in the group longest; a static member that came back keeps its place (C-16, C-18).
"""
