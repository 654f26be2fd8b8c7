"""Clusters: what changes about them, and what is refused."""
