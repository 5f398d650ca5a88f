"""The solver for partitions that weigh differently: what `optimal` does where counting is not enough.

`options` is what may be asked, `parts` cuts a group into instances, `instance` states one, and `solve` goes
through the steps: a bound, `greedy` answers, `local_search`, `shedding` where moves are limited, then `exact`
for the smallest and `cp` up to a size. Every step is a pure function with its work counted, so that equal
groups give equal answers. `tolerant` is for sizes at which searching is too slow.
"""
