"""Runs: submissions of a template, from the form to the cluster and to their end."""
