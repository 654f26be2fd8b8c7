"""The quota chain over the API: the answer of the page with every link."""

from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from tests import factories
from tests.calling import Caller
from tests.described import description
from tests.insights.fleet import Site, connect, pool, site
from tests.scene import scene
from workloads.models import ClusterObject

pytestmark = pytest.mark.django_db
# Two for who calls; the cluster with its kinds and pools, the copy of it and its age, the sizes and quotas of Azure.
MAX_QUERIES = 9


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> Site:
    connect(monkeypatch)
    return site(scene())


def test_it_names_the_link_that_stops_an_ask_and_what_comes_next(here: Site) -> None:
    here.quota(limit=4)
    told = (
        Caller(here.scene.ada).get("quota-chains/training/?flavor=a100&gpus=60").json()
    )
    assert (told["cluster"], told["flavor"], told["gpus"], told["fits"]) == (
        "training",
        "a100",
        60,
        False,
    )
    assert told["sentence"].startswith(
        "60 × A100 more: stopped at the subscription quota of"
    )
    assert "node pool a100" in told["then"]
    assert told["advice"] == "An increase takes days: ask for it now."
    links = {one["layer"]: one for one in told["links"]}
    assert [*links] == ["family", "regional", "pool", "nodes", "promised"]
    assert (links["family"]["room"], links["family"]["stops"]) == (16, 1)
    assert (links["pool"]["room"], links["pool"]["stops"]) == (48, 2)
    assert (links["regional"]["stops"], links["nodes"]["room"]) == (None, None)


def test_what_fits_is_stopped_by_nothing(here: Site) -> None:
    told = Caller(here.scene.ada).get("quota-chains/training/?flavor=a100").json()
    assert (told["fits"], told["gpus"], told["question"]) == (True, 1, "grant")
    assert {one["stops"] for one in told["links"]} == {None}


def test_a_team_asks_about_its_own_namespace(here: Site) -> None:
    tenancy = here.scene.tenancy
    factories.allocation(here.scene.ada, tenancy, here.flavor, gpus=2)
    here.queue(tenancy, nominal=2, used=1)
    query = f"flavor=a100&gpus=2&question=start&namespace={tenancy.namespace}"
    told = Caller(here.scene.ada).get(f"quota-chains/training/?{query}").json()
    assert "stopped at the team's ClusterQueue, 1 left." in told["sentence"]
    assert [one["layer"] for one in told["links"]][-2:] == ["queue", "namespace"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("spec", "conditions"),
    [
        ({"stopPolicy": "Hold"}, []),
        ({}, [{"type": "Active", "status": "False", "reason": "FlavorNotFound"}]),
    ],
    ids=["stopped", "not active"],
)
def test_a_queue_that_admits_nothing_stops_every_start(
    here: Site, spec: dict[str, Any], conditions: list[dict[str, str]]
) -> None:
    tenancy = here.scene.tenancy
    factories.allocation(here.scene.ada, tenancy, here.flavor, gpus=2)
    here.queue(tenancy, nominal=2, used=0)
    copy = ClusterObject.objects.get(kind="ClusterQueue")
    copy.body["spec"] |= spec
    copy.body["status"]["conditions"] = conditions
    copy.save()
    query = f"flavor=a100&gpus=1&question=start&namespace={tenancy.namespace}"
    told = Caller(here.scene.ada).get(f"quota-chains/training/?{query}").json()
    assert (
        told["sentence"]
        == "1 × A100 more: stopped at the team's ClusterQueue, which admits nothing now."
    )


def test_another_teams_namespace_is_like_a_missing_one(here: Site) -> None:
    caller = Caller(here.scene.mallory)
    space = here.scene.tenancy.namespace
    other = caller.get(f"quota-chains/training/?flavor=a100&namespace={space}")
    missing = caller.get("quota-chains/training/?flavor=a100&namespace=qm-nowhere")
    assert other.status_code == missing.status_code == 422
    assert other.json()["code"] == missing.json()["code"] == "no_such_namespace"
    assert (
        other.json()["detail"].replace(space, "qm-nowhere") == missing.json()["detail"]
    )


@pytest.mark.parametrize(
    ("query", "status"),
    [
        ("", 400),
        ("flavor=a100&gpus=0", 400),
        ("flavor=a100&gpus=10001", 400),
        ("flavor=a100&gpus=many", 400),
        ("flavor=a100&question=why", 400),
        ("flavor=a100&team=vision", 400),
        ("flavor=h900", 422),
    ],
)
def test_what_cannot_be_asked_is_refused_with_a_sentence(
    here: Site, query: str, status: int
) -> None:
    answer = Caller(here.scene.ada).get(f"quota-chains/training/?{query}")
    assert (answer.status_code, bool(answer.json()["detail"])) == (status, True)
    described = description()
    assert (
        str(status)
        in described["paths"]["/api/v1/quota-chains/{name}/"]["get"]["responses"]
    )


def test_nobody_and_nowhere(here: Site) -> None:
    assert Caller().get("quota-chains/training/?flavor=a100").status_code == 401
    assert (
        Caller(here.scene.ada).get("quota-chains/nowhere/?flavor=a100").status_code
        == 404
    )


def test_what_was_read_long_ago_bears_its_age(monkeypatch: pytest.MonkeyPatch) -> None:
    connect(monkeypatch)
    here = site(scene(), read_at=timezone.now() - timedelta(hours=3))
    told = Caller(here.scene.ada).get("quota-chains/training/?flavor=a100").json()
    ages = {one["layer"]: one["age"] for one in told["links"]}
    assert ages == {
        "family": "as of 3 h ago",
        "regional": "as of 3 h ago",
        "pool": "as of 3 h ago",
        "nodes": "",
        "promised": "",
    }


@pytest.mark.slow
def test_it_takes_as_many_queries_however_many_clusters_there_are(here: Site) -> None:
    caller, taken = Caller(here.scene.priya), []
    caller.get("quota-chains/training/?flavor=a100")
    for more in (5, 45):
        for _ in range(more):
            cluster = factories.cluster()
            factories.flavor(cluster)
            pool(cluster, at=timezone.now())
            factories.tenancy(factories.team(by=here.scene.ada), here.cluster)
        with CaptureQueriesContext(connection) as captured:
            assert (
                caller.get("quota-chains/training/?flavor=a100&gpus=16").status_code
                == 200
            )
        taken.append(len(captured))
    assert taken[0] == taken[1] <= MAX_QUERIES
