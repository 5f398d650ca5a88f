"""How many examples Hypothesis tries: the numbers in the tests are those of its profile ``long``."""

from hypothesis import settings


def scaled(count: int) -> int:
    """Return `count` in the profile ``long``, and the same share of the examples of a shorter profile."""
    return max(1, count * settings.default.max_examples // 100)
