"""The command-line client of Quartermaster: GPUs and training runs over its REST API, and nothing of the portal."""

__version__ = "1.0.0"
