"""Real groups from their logs: what happened, what caused it, what it cost."""
