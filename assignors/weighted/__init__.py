"""The solver of `optimal` for partitions with weights.

`options` parses its options, `parts` divides a group into instances, `instance` describes one, and `solve`
runs the steps: a bound, `greedy` assignments, `local_search`, `shedding` if moves are limited, then `exact`
for small instances and `cp` for larger ones. Every step is a pure function that counts its work, so that
equal groups get equal assignments. `tolerant` is for groups that are too large for a search.
"""
