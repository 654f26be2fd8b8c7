"""Claims of a namespace by name, and the paths at which pods mount them. Pure."""

import re

CLAIM = re.compile(r"[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?", re.ASCII)
MAX_PATH = 400


def is_path(value: object) -> bool:
    """Whether something can be mounted there: an absolute path without steps up, on which Kubernetes can agree."""
    return (
        isinstance(value, str)
        and len(value) <= MAX_PATH
        and value.startswith("/")
        and value.isprintable()
        and ".." not in value.split("/")
        and ":" not in value
    )
