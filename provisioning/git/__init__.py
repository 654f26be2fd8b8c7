"""Delivery through a Git repository: commits, branches and pull requests."""
