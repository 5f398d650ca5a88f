"""The same requests to a real Kafka and to another broker, in step; their responses are compared.

A seed makes a script of requests for one group (`odd`, `live`, `happenings`, `offsets`). `Playing` sends each
step to both brokers at the same time, with the names that the broker gave in place of symbols (`Names`), and
compares the responses with the symbols in place of the names. What differs has a reason in the table of
`known`, or is a fault; a script with a fault is made shorter (`shrinking`).
"""
