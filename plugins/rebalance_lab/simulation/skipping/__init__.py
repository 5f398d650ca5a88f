"""What a process at rest leaves out of its messages, with the same trace as if it had sent them."""
