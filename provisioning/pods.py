"""Pods as Kubernetes shows them. Pure."""

from collections.abc import Mapping
from typing import Any

# The phases in which a pod has ended: it holds nothing of its node, and nothing is written in it any more.
OVER = ("Succeeded", "Failed")


def is_over(pod: Mapping[str, Any]) -> bool:
    """Whether a pod has ended, one way or the other."""
    return (pod.get("status") or {}).get("phase") in OVER
