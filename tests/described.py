"""The API's description as it is committed: 770 kB of YAML, parsed once in a process."""

from functools import cache
from typing import Any

import yaml

from scripts.packages import ROOT


@cache
def description() -> dict[str, Any]:
    """The whole document, which every test shares: nobody changes it."""
    return parsed((ROOT / "docs/reference/openapi.yaml").read_bytes())


def parsed(text: bytes) -> dict[str, Any]:
    """A description as YAML; by libyaml, for Python's own parser takes two seconds."""
    found: dict[str, Any] = yaml.load(text, Loader=yaml.CSafeLoader)
    return found
