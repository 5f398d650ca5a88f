"""Protocol families: the records that name both sides of a protocol."""
