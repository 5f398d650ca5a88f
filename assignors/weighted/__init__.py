"""The solver of `optimal` for partitions with weights.

`options` parses its options, `parts` divides a group into instances, and `instance` describes one. `within`
runs the steps of the default order: `keeping` lets members keep their units under a level, `exact` enumerates
small instances, and `cp` solves larger ones. `solve` runs the steps of the strict order: a bound, `greedy`
assignments, `local_search`, `shedding` if moves are limited, then `exact` and `cp`. Every step is a pure
function that counts its work, so that equal groups get equal assignments. `tolerant` is for groups that are
too large for a search.
"""
