"""Kinds of GPU: what changes about them, and what is refused."""
