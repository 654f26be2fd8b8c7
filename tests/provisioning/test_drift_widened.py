"""What somebody adds to a value that is the portal's as a whole: a selector, a traffic rule, a queue's groups."""

from typing import Any

import pytest

from tests.provisioning.conftest import Place
from tests.provisioning.test_drifting import QUEUE, one, passes, true

__all__ = ["true"]
pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(
    ("name", "spec", "words"),
    [
        (
            "allow-own-and-dns",
            {"ingress": [{"from": [{"podSelector": {}, "namespaceSelector": {}}]}]},
            "which namespaces (spec.ingress[0].from[0].namespaceSelector)",
        ),
        ("default-deny", {"podSelector": {"matchLabels": {"nobody": "here"}}}, "which pods"),
    ],
)
def test_a_policy_that_somebody_widened_is_put_right(
    true: Place, name: str, spec: dict[str, Any], words: str
) -> None:
    policy = ("networking.k8s.io/v1", "NetworkPolicy")
    before = true.kubernetes.get(policy, name, true.tenancy.namespace)
    true.kubernetes.patch(policy, name, true.tenancy.namespace, {"spec": spec})
    assert passes(true) == 1
    assert before is not None
    after = true.kubernetes.get(policy, name, true.tenancy.namespace)
    assert after is not None
    assert after["spec"] == before["spec"]
    assert words in one().sentence
    assert one().who == "kubectl-edit"
    assert passes(true) == 0


def test_a_queue_that_somebody_forbade_to_lend_is_put_right(true: Place) -> None:
    group = (true.kubernetes.get(QUEUE, true.tenancy.namespace) or {})["spec"]["resourceGroups"]
    group[0]["flavors"][0]["resources"][0]["lendingLimit"] = "0"
    true.kubernetes.patch(QUEUE, true.tenancy.namespace, None, {"spec": {"resourceGroups": group}})
    assert passes(true) == 1
    assert one().sentence.endswith("from nothing to 0")
    assert passes(true) == 0
