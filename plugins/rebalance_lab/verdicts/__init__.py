"""What a run was worth: metrics, lower bounds and comparisons, all computed from traces."""
