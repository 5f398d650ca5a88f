"""Scenarios and groups as documents: parsed, checked, written and generated."""
