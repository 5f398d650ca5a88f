"""The solver of `optimal` for partitions with weights. The README has its steps."""
