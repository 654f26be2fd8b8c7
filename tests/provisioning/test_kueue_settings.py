"""What Kueue's own configuration has to say for teams' work, and what is said when it does not."""

import json

import pytest

from fleet.models import Cluster
from provisioning.clusters.kueue import settings_lacking
from provisioning.clusters.observe import look_at
from tests.provisioning.conftest import Place

ENOUGH = """
managedJobsNamespaceSelector: {matchLabels: {kueue.x-k8s.io/managed: "true"}}
integrations: {frameworks: [batch/job, pod]}
"""


def test_a_configuration_that_says_everything_lacks_nothing() -> None:
    assert settings_lacking(ENOUGH) == []
    assert settings_lacking("apiVersion: config.kueue.x-k8s.io/v1beta2") == []


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            ENOUGH.replace("batch/job, ", ""),
            "does not name batch/job: Jobs start past the queue",
        ),
        (
            ENOUGH.replace(", pod", ""),
            "does not name pod: pods made by hand start past the queue",
        ),
        (
            ENOUGH.replace("managed:", "other:"),
            "does not select namespaces with kueue.x-k8s.io/managed=true",
        ),
        (
            ENOUGH.replace('"true"', '"false"'),
            "does not select namespaces with kueue.x-k8s.io/managed=true",
        ),
        ("a: [", "it cannot be read"),
        ("text", "it cannot be read"),
    ],
)
def test_what_it_lacks_is_said(text: str, words: str) -> None:
    [lacking] = settings_lacking(text)
    assert words in lacking


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("text", "state"), [(ENOUGH, "good"), ("integrations: {frameworks: []}", "waiting")]
)
def test_it_is_looked_at_with_the_cluster(place: Place, text: str, state: str) -> None:
    change = {"data": {"controller_manager_config.yaml": text}}
    place.kubernetes.patch(
        ("v1", "ConfigMap"), "kueue-manager-config", "kueue-system", change
    )
    assert look_at(place.cluster.pk, now=place.now)
    found = Cluster.objects.get(pk=place.cluster.pk)
    assert {part["part"]: part["state"] for part in found.parts}[
        "Kueue's settings"
    ] == state
    assert found.health == "good", json.dumps(found.parts)
