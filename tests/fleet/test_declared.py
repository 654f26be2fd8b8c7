"""Clusters and flavors declared by the installation."""

import json
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.core.management import CommandError, call_command

from audit.models import Event
from fleet.declared import declare
from fleet.models import Cluster, Flavor
from web.refusals import BadInput

A100 = {
    "name": "a100",
    "product": "A100",
    "memory_gb": 80,
    "gpus_per_node": 8,
    "price_per_gpu_hour": "3.67",
    "node_labels": {"accelerator": "nvidia-a100"},
}
TRAINING: dict[str, Any] = {
    "name": "training",
    "title": "Training",
    "region": "eastus",
    "purpose": "training",
    "flavors": [A100],
}

pytestmark = pytest.mark.django_db


def test_it_adds_what_is_declared_and_says_so_in_the_audit_log() -> None:
    assert declare([TRAINING]) == [
        "added cluster training",
        "added flavor a100 of training",
    ]

    assert Flavor.objects.get().cluster.title == "Training"
    assert set(Event.objects.values_list("kind", "actor_kind")) == {
        ("cluster.added", "settings"),
        ("flavor.added", "settings"),
    }


def test_declaring_the_same_again_changes_nothing() -> None:
    declare([TRAINING])
    before = Event.objects.count()

    assert declare([TRAINING]) == []
    assert Event.objects.count() == before


def test_it_changes_what_differs() -> None:
    declare([TRAINING])

    declare(
        [
            {
                **TRAINING,
                "title": "Training, East US",
                "flavors": [{**A100, "price_per_gpu_hour": "4"}],
            }
        ]
    )

    assert Cluster.objects.get().title == "Training, East US"
    assert Flavor.objects.get().price_per_gpu_hour == 4


@pytest.mark.parametrize(
    ("document", "field"),
    [
        pytest.param([{**TRAINING, "colour": "red"}], "colour", id="unknown field"),
        pytest.param([{"title": "No name"}], "name", id="no name"),
        pytest.param(
            [{**TRAINING, "flavors": [{**A100, "price_per_gpu_hour": "free"}]}],
            "price_per_gpu_hour",
            id="no price",
        ),
        pytest.param(
            [{**TRAINING, "flavors": [{**A100, "name": "quartermaster-cpu"}]}],
            "name",
            id="our own flavor",
        ),
        pytest.param(
            [TRAINING, {**TRAINING, "name": "Kube System"}],
            "name",
            id="bad name after a good one",
        ),
    ],
)
def test_it_refuses_a_bad_document_whole(
    document: list[dict[str, Any]], field: str
) -> None:
    with pytest.raises(BadInput) as refusal:
        declare(document)

    assert refusal.value.field == field
    assert not Cluster.objects.exists()


def test_the_command_reads_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "fleet.json"
    path.write_text(json.dumps({"clusters": [TRAINING]}))
    monkeypatch.setattr(settings.ENV, "fleet_file", path)

    call_command("declare_fleet")

    assert Cluster.objects.filter(name="training").exists()


def test_the_command_names_what_is_wrong(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "fleet.json"
    path.write_text("{")
    monkeypatch.setattr(settings.ENV, "fleet_file", path)

    with pytest.raises(CommandError, match=r"fleet\.json"):
        call_command("declare_fleet")
