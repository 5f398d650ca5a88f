"""Errors of texts of strategies, for approved texts."""

import re

import pytest

from coordinator_core.errors import RebalanceLabError


def refusal(registry, text):
    """The error of a strategy, or of its assignor when it is made, without a line of this folder."""
    with pytest.raises(RebalanceLabError) as caught:
        registry.build(registry.strategy(text))
    return re.sub(r" \([\w./-]+\.py:\d+\)", "", str(caught.value))


def refusals(registry, *texts):
    """The errors of texts that are separated by spaces, by text."""
    return {text: refusal(registry, text) for line in texts for text in line.split()}
