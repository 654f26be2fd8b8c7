"""Profiles of notebook servers: what each gives, and what KubeSpawner makes of it. Pure."""
