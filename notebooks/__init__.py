"""Notebook servers: the profiles that people choose from."""
