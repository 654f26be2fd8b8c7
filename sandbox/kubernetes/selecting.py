"""Label selectors that stand in objects. Pure."""

from collections.abc import Mapping
from typing import Any

from sandbox.kubernetes.causes import items, part


def matches(selector: Any, labels: Mapping[str, Any]) -> bool:
    """Whether labels fulfil a selector; none at all selects nothing, an empty one everything."""
    if not isinstance(selector, dict):
        return False
    if any(
        labels.get(key) != value for key, value in part(selector, "matchLabels").items()
    ):
        return False
    return all(_holds(one, labels) for one in items(selector, "matchExpressions"))


def _holds(expression: dict[str, Any], labels: Mapping[str, Any]) -> bool:
    key, values = expression.get("key"), expression.get("values") or ()
    match expression.get("operator"):
        case "In":
            return labels.get(str(key)) in values
        case "NotIn":
            return labels.get(str(key)) not in values
        case "Exists":
            return key in labels
    return key not in labels
