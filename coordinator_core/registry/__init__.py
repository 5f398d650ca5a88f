"""Plugins: hooks, the registry, strategies, modifiers and providers."""
