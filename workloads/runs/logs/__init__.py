"""Logs of runs: read, and followed while they are written."""
