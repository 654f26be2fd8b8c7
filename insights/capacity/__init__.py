"""Capacity at a glance: which limits come near, when they will be reached, and what each kind of GPU still has."""
