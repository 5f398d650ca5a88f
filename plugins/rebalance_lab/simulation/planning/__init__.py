"""Assignments without messages: the rounds of a scenario as a plan, for scores of many groups."""
