"""Clusters as they are: do they answer, what is on them, what works there."""
