"""The time as objects carry it."""

from datetime import UTC, datetime


def timestamp() -> str:
    """Now, RFC 3339 in UTC with whole seconds."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
