"""Tables, comparisons and pictures as text, JSON, CSV, HTML and SVG."""
