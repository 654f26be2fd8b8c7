"""The command-line client of Quartermaster: training runs over its REST API, and nothing of the portal itself."""

__version__ = "1.0.0"
