"""Random scenarios with faults, checks of their runs, and the smallest scenario that fails."""
