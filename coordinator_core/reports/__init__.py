"""Comparisons and pictures as text, JSON, CSV, HTML and SVG."""
