"""Notebook servers that people launched: what is wanted of each, how it stands at its hub, and when it is idle."""
