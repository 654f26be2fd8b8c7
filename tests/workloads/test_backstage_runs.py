"""A template of a real Backstage starts a training run in a namespace of the person's team."""

from pathlib import Path

import pytest
from pytest_django import Settings
from pytest_django.live_server_helper import LiveServer

from accounts.models import User
from tests.calling import token_of
from tests.integrations.real_backstage import ALICE, backstage
from tests.services.process import wait_until
from tests.workloads.conftest import Watched
from workloads.models import Run


@pytest.mark.slow
def test_a_template_starts_a_run_for_who_filled_it_in(
    watched: Watched, live_server: LiveServer, settings: Settings, tmp_path: Path
) -> None:
    User.objects.filter(pk=watched.ada.pk).update(oid=ALICE)
    token = token_of(watched.ada, "read")
    with backstage(live_server.url, folder=tmp_path, token=token) as real:
        real.join(settings)
        namespace = f"gpu-namespace-{watched.tenancy.pk}"
        wait_until(
            lambda: real.entity("resource", namespace) is not None,
            what="the namespace to be in the catalog",
        )
        form = {
            "namespace": f"resource:default/{namespace}",
            "template": "single-node",
            "title": "Fine-tuning",
            "flavor": "a100",
            "gpus": 2,
            "minutes": 60,
            "image": "registry.example.com/vision/train:1",
            "program": ["train.py", "--lr=3e-5"],
        }
        task = real.run("start-training-run", form)
    assert task.status == "completed", task.log
    run = Run.objects.get()
    assert (run.requester_id, run.title) == (watched.ada.pk, "Fine-tuning")
    assert run.submission["values"]["program"] == ["train.py", "--lr=3e-5"]
    assert task.output["links"][0]["url"].endswith(f"/runs/{run.pk}")
