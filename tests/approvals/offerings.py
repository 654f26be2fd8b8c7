"""One good spec of each offering for the team of the scene."""

from collections.abc import Mapping
from typing import Any

from fleet.models import Cluster
from tests import factories

FLAVOR = "training/a100"
SPECS: Mapping[str, dict[str, Any]] = {
    "gpus": {"flavor": FLAVOR, "gpus": 2, "purpose": "other"},
    "notebook": {"flavor": FLAVOR, "gpus": 1, "profile": "pytorch"},
    "volume": {
        "cluster": "training",
        "name": "corpus",
        "gib": 500,
        "access": "ReadWriteMany",
    },
    "namespace": {"cluster": "inference", "environment": "test", "project": "detector"},
    "training": {"flavor": FLAVOR, "gpus": 16},
    "endpoint": {
        "flavor": FLAVOR,
        "model": "org/llama-3.1-8b",
        "gpus_per_replica": 2,
        "replicas": 3,
    },
    "openai": {
        "region": "swedencentral",
        "model": "gpt-4o",
        "thousand_tokens_per_minute": 30,
    },
    "reservation": {
        "region": "eastus",
        "vm_size": "Standard_NC96ads_A100_v4",
        "instances": 2,
    },
    "cluster": {
        "region": "westeurope",
        "vm_size": "Standard_NC24ads_A100_v4",
        "nodes": 4,
    },
}


def another_cluster() -> Cluster:
    """A cluster that takes teams and where the team of the scene is not yet; the other one starts notebooks."""
    factories.notebooks_on(Cluster.objects.get(name="training"))
    return factories.cluster("inference", purpose=Cluster.Purpose.INFERENCE)
