"""What the tests of the bench share: a small scenario, and what a person reads in it."""

import html
import re

import yaml

SMALL = """\
name: small
duration: 40s
topics:
  t: {partitions: 4, rate: 40}
members:
  - {id: c, count: 2, topics: [t], process_rate: 100}
"""


def said(widget):
    """What a person reads in an HTML widget."""
    return html.unescape(re.sub(r"<[^>]*>", "", widget.value))


def document_of(lab):
    return yaml.safe_load(lab.document.value)


def events_of(lab):
    return document_of(lab).get("events") or []
