"""Families whose members need no group coordinator: `watcher` has a registry, `peers` lists of members."""
