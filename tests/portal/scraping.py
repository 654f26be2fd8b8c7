"""Scrapes of /metrics, and rows for them to be about."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.conf import settings
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from prometheus_client.parser import text_string_to_metric_families
from pydantic import SecretStr

from accounts.models import User
from fleet.models import Cluster
from notices.models import Notice
from provisioning.models import Tenancy
from tests import factories
from workloads.models import ClusterObject

TOKEN = "scrapes-" + "t" * 40


@pytest.fixture
def token(db: None, monkeypatch: pytest.MonkeyPatch) -> str:
    """What the operators' Prometheus is let in with; there is a mail server, too."""
    monkeypatch.setattr(settings.ENV, "metrics_token", SecretStr(TOKEN))
    monkeypatch.setattr(settings.ENV, "mail_host", "mail.example.com")
    return TOKEN


def scrape(client: Client | None = None, **headers: str) -> Any:
    """The answer to a scrape with the token, unless a header says otherwise."""
    sent = {"Authorization": f"Bearer {TOKEN}"} | headers
    return (client or Client(raise_request_exception=False)).get(
        "/metrics", headers=sent
    )


def told() -> dict[tuple[str, ...], float]:
    """Every sample of a scrape, by its name and the values of its labels, by the alphabet of these."""
    families = text_string_to_metric_families(scrape().content.decode())
    return {
        (sample.name, *dict(sorted(sample.labels.items())).values()): sample.value
        for family in families
        for sample in family.samples
    }


def value(name: str, *labels: str) -> float:
    """One sample of a scrape."""
    return told()[f"quartermaster_{name}", *labels]


def ago(**span: float) -> datetime:
    """A moment in the past."""
    return timezone.now() - timedelta(**span)


def is_about(found: float, wanted: float) -> bool:
    """Whether an age is as it was when the row was made, and some seconds for the test."""
    return wanted <= found < wanted + 60


def statements() -> int:
    """How many statements one scrape sends."""
    with CaptureQueriesContext(connection) as asked:
        assert scrape().status_code == 200
    return len(asked)


def fleet(*, teams: int) -> None:
    """So many teams with a tenancy that is not true, a run, ten jobs in the queue and a request that waits each."""
    cluster, _ = Cluster.objects.get_or_create(
        name="cluster-a",
        defaults={"title": "A", "region": "x", "purpose": "training"},
    )
    flavor = factories.flavor(cluster)
    for _ in range(teams):
        ada = factories.person()
        place = factories.tenancy(factories.team(by=ada), cluster)
        factories.run(place, ada)
        for number in range(10):
            copy(place, f"job-{number}", {"gpus": 1, "since": ago(minutes=1)})
        factories.join(place.team, ada)
        factories.request(ada, place, flavor, gpus=4)


def copy(
    of: Tenancy,
    name: str,
    job: Mapping[str, Any],
    *,
    holds: str = "",
    is_let_in: bool = False,
) -> ClusterObject:
    """The copy of a team's Workload, waiting or with a condition that holds."""
    since = f"{job['since']:%Y-%m-%dT%H:%M:%SZ}"
    condition = {
        "type": holds or "QuotaReserved",
        "status": "True" if holds else "False",
        "reason": "Known",
        "message": "",
        "lastTransitionTime": since,
    }
    assigned = {"name": "main", "flavors": {"nvidia.com/gpu": "a100"}}
    admission = {"admission": {"podSetAssignments": [assigned]}} if is_let_in else {}
    return ClusterObject.objects.create(
        cluster=of.cluster,
        kind="Workload",
        namespace=of.namespace,
        name=name,
        body={
            "kind": "Workload",
            "metadata": {
                "name": name,
                "namespace": of.namespace,
                "uid": name,
                "creationTimestamp": since,
            },
            "spec": {"podSets": [{"name": "main", "count": 1, "gpus": job["gpus"]}]},
            "status": {"conditions": [condition], **admission},
        },
    )


def notice_for(person: User, *, at: datetime) -> Notice:
    """Something that a person is told."""
    return Notice.objects.create(
        person=person,
        kind="request_waiting",
        subject_type="request",
        subject_id=1,
        link="/requests/1/",
        message={},
        pace="at_once",
        at=at,
    )
