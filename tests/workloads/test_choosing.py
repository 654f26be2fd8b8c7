"""Profiles of notebooks as people of a team see them: price, and whether one would start now."""

from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from accounts.models import User
from accounts.roles import Role
from fleet.models import Flavor
from notebooks.profile_desk import actions
from notebooks.profiles.priority import goes_first_words
from provisioning.models import Tenancy
from tests import factories
from tests.calling import Caller
from tests.notebooks.documents import CPU
from workloads.choosing.page import Card, Outcome, cards_of
from workloads.models import ClusterObject
from workloads.runs.planning.maintained import AFTER

pytestmark = pytest.mark.django_db
GOES_FIRST = goes_first_words(0)
GPU = """
slug: {slug}
title: {gpus} × A100
image: registry.example.com/notebook:1
cpus: 8
memory: 64
gpus: {gpus}
flavor: a100
"""


@pytest.fixture
def lead() -> User:
    return factories.person("Priya Nair", Role.PLATFORM_LEAD)


@pytest.fixture
def ada() -> User:
    return factories.person("Ada Okafor")


@pytest.fixture
def tenancy(ada: User) -> Tenancy:
    """A namespace with 2 A100 on a cluster that is set up."""
    cluster = factories.cluster("training")
    a100, _ = (
        factories.flavor(cluster, "a100"),
        factories.flavor(cluster, "t4", product="T4"),
    )
    team = factories.team("Vision", by=ada)
    factories.join(team, ada)
    made = factories.tenancy(team, cluster)
    factories.allocation(ada, made, a100, gpus=2)
    Tenancy.objects.filter(pk=made.pk).update(observed_generation=1)
    return Tenancy.objects.select_related("team", "project", "cluster__ability").get(
        pk=made.pk
    )


def offer(lead: User, text: str) -> None:
    """Let people choose a profile."""
    made = actions.save(text, by=lead, now=timezone.now())
    actions.publish(made.profile.slug, by=lead)


def cards(tenancy: Tenancy) -> dict[str, Card]:
    """The cards by slug."""
    return {
        one.profile.document.slug: one for one in cards_of(tenancy, now=timezone.now())
    }


def holds(tenancy: Tenancy, gpus: int) -> None:
    """Work of the team has so many GPUs, as its cluster last told."""
    ClusterObject.objects.create(
        cluster=tenancy.cluster,
        kind="Workload",
        namespace=tenancy.namespace,
        name=f"job-{gpus}",
        body=admitted(tenancy.namespace, gpus),
    )


def waits(tenancy: Tenancy, *, gpus: int, priority: int) -> None:
    """A job of the team waits for so many GPUs, as its cluster last told."""
    body = admitted(tenancy.namespace, gpus)
    body["metadata"]["name"] = body["metadata"]["uid"] = "waits"
    body["spec"]["priority"] = priority
    body["status"] = {}
    ClusterObject.objects.create(
        cluster=tenancy.cluster,
        kind="Workload",
        namespace=tenancy.namespace,
        name="waits",
        body=body,
    )


def admitted(namespace: str, gpus: int) -> dict[str, Any]:
    """A Workload that Kueue let in."""
    condition = {
        "status": "True",
        "lastTransitionTime": "2026-11-22T16:00:00Z",
        "message": "",
    }
    usage = {"cpu": "1", "nvidia.com/gpu": str(gpus)}
    return {
        "kind": "Workload",
        "metadata": {
            "name": f"job-{gpus}",
            "uid": f"uid-{gpus}",
            "namespace": namespace,
            "creationTimestamp": "2026-11-22T16:00:00Z",
        },
        "spec": {
            "active": True,
            "queueName": "default",
            "podSets": [{"name": "main", "count": 1, "gpus": gpus}],
        },
        "status": {
            "conditions": [
                {"type": "QuotaReserved", "reason": "QuotaReserved", **condition},
                {"type": "Admitted", "reason": "Admitted", **condition},
            ],
            "admission": {
                "clusterQueue": namespace,
                "podSetAssignments": [
                    {
                        "name": "main",
                        "count": 1,
                        "flavors": {"nvidia.com/gpu": "a100"},
                        "resourceUsage": usage,
                    }
                ],
            },
        },
    }


def test_a_card_says_what_a_server_is_and_costs_and_that_it_starts_now(
    lead: User, ada: User, tenancy: Tenancy
) -> None:
    offer(lead, GPU.format(slug="two", gpus=2))
    card = cards(tenancy)["two"]
    assert (card.size, card.price) == (
        "2 × A100 80 GB · 8 CPU · 64 GiB",
        "$7.34 an hour",
    )
    assert card.usd_per_hour == Decimal("7.34")
    assert card.is_paid
    assert card.answer.outcome is Outcome.NOW
    assert card.answer.detail == f"2 of your 2 × A100 are free now. {GOES_FIRST}"


def test_a_card_says_that_no_node_has_room_for_it_now(
    lead: User, ada: User, tenancy: Tenancy
) -> None:
    offer(lead, GPU.format(slug="one", gpus=1))
    offer(lead, GPU.format(slug="two", gpus=2))
    node: dict[str, Any] = {
        "kind": "Node",
        "metadata": {"name": "node-0", "labels": {"accelerator": "a100"}},
        "status": {"allocatable": {"nvidia.com/gpu": "8"}},
    }
    taken = {"resources": {"limits": {"nvidia.com/gpu": "7"}}}
    pod: dict[str, Any] = {
        "kind": "Pod",
        "metadata": {"name": "other", "namespace": "elsewhere"},
        "spec": {"nodeName": "node-0", "containers": [taken]},
    }
    for body in (node, pod):
        ClusterObject.objects.create(
            cluster=tenancy.cluster,
            kind=body["kind"],
            name=body["metadata"]["name"],
            body=body,
        )
    tenancy.cluster.flavors.filter(name="a100").update(gpus_total=8)
    found = cards(tenancy)
    assert found["one"].answer.outcome is Outcome.NOW
    answer = found["two"].answer
    assert (answer.outcome, answer.sentence) == (
        Outcome.QUEUE,
        "It gets its GPUs, and waits for room on a node",
    )
    assert "no node has 2 × A100 free now: the most on one is 1" in answer.detail


def test_a_card_says_that_waiting_work_of_a_higher_priority_stops_the_notebook(
    lead: User, ada: User, tenancy: Tenancy
) -> None:
    offer(lead, GPU.format(slug="one", gpus=1))
    waits(tenancy, gpus=2, priority=100_000)
    answer = cards(tenancy)["one"].answer
    assert (answer.outcome, answer.sentence) == (
        Outcome.QUEUE,
        "It may start, and be stopped for what waits",
    )
    assert (
        "It has a higher priority and takes these GPUs as soon as they are enough for it: the notebook is stopped "
        "then, with what it has in memory."
    ) in answer.detail
    assert GOES_FIRST not in answer.detail


def test_what_waits_with_the_notebooks_own_priority_takes_nothing_from_it(
    lead: User, ada: User, tenancy: Tenancy
) -> None:
    offer(lead, GPU.format(slug="one", gpus=1))
    waits(tenancy, gpus=2, priority=0)
    answer = cards(tenancy)["one"].answer
    assert answer.sentence == "It may start before what waits"
    assert "It has a higher priority" not in answer.detail
    assert answer.detail.endswith(GOES_FIRST)


def test_on_a_cluster_with_volcano_nothing_takes_a_notebooks_gpus(
    lead: User, ada: User, tenancy: Tenancy
) -> None:
    offer(lead, GPU.format(slug="one", gpus=1))
    tenancy.cluster.queueing = "volcano"
    tenancy.cluster.save(update_fields=["queueing"])
    waits(tenancy, gpus=2, priority=100_000)
    assert "higher priority" not in cards(tenancy)["one"].answer.detail


@pytest.mark.parametrize("away", ["the cluster", "JupyterHub"])
def test_nothing_starts_at_once_while_somebody_does_not_answer(
    lead: User, ada: User, tenancy: Tenancy, away: str
) -> None:
    offer(lead, CPU)
    offer(lead, GPU.format(slug="one", gpus=1))
    found = cards_of(tenancy, now=timezone.now(), away=away)
    assert {one.answer.sentence for one in found} == {
        f"It starts when {away} answers again"
    }
    assert {one.answer.outcome for one in found} == {Outcome.QUEUE}
    details = [one.answer.detail for one in found]
    assert all(one.startswith("What was known before: ") for one in details)


def test_nothing_starts_before_a_maintenance_is_over(
    lead: User, ada: User, tenancy: Tenancy
) -> None:
    offer(lead, CPU)
    offer(lead, GPU.format(slug="one", gpus=1))
    offer(lead, GPU.format(slug="four", gpus=4))
    now = timezone.now()
    tenancy.cluster.maintenance_starts_at = now - timedelta(hours=1)
    tenancy.cluster.maintenance_ends_at = now + timedelta(hours=1)
    found = {one.profile.document.slug: one for one in cards_of(tenancy, now=now)}
    for slug in ("cpu", "one"):
        answer = found[slug].answer
        assert (answer.outcome, answer.sentence) == (Outcome.QUEUE, AFTER)
        assert "nothing new starts before." in answer.detail
    assert found["four"].answer.outcome == Outcome.NOT_HELD


def test_a_server_without_gpus_always_starts_and_costs_nothing(
    lead: User, ada: User, tenancy: Tenancy
) -> None:
    offer(lead, CPU)
    card = cards(tenancy)["cpu"]
    assert (card.answer.outcome, card.price, card.usd_per_hour) == (
        Outcome.NOW,
        "costs nothing",
        Decimal(0),
    )


def test_a_server_waits_while_the_teams_gpus_are_in_use(
    lead: User, ada: User, tenancy: Tenancy
) -> None:
    offer(lead, GPU.format(slug="one", gpus=1))
    holds(tenancy, 2)
    card = cards(tenancy)["one"]
    assert card.answer.outcome is Outcome.QUEUE
    assert card.answer.detail.startswith("0 of your 2 × A100 are free now.")


def test_what_the_team_lacks_is_asked_for_with_the_form_filled_in(
    lead: User, ada: User, tenancy: Tenancy
) -> None:
    offer(lead, GPU.format(slug="four", gpus=4))
    offer(lead, GPU.format(slug="small", gpus=1).replace("flavor: a100", "flavor: t4"))
    found = cards(tenancy)
    four, small = found["four"].answer, found["small"].answer
    assert not found["four"].is_paid
    assert (four.outcome, four.lacks, four.sentence) == (
        Outcome.NOT_HELD,
        2,
        "Your team holds too few A100",
    )
    assert (small.outcome, small.lacks, small.sentence) == (
        Outcome.NOT_HELD,
        1,
        "Your team holds no T4",
    )
    browser = Client()
    browser.force_login(ada)
    form = browser.get(four.ask).content.decode()
    assert 'value="2"' in form
    assert "training/a100" in form
    assert found["four"].verdict["hint"]


def test_spot_that_the_team_lacks_is_called_so(
    lead: User, ada: User, tenancy: Tenancy
) -> None:
    offer(lead, GPU.format(slug="four", gpus=4))
    Flavor.objects.filter(name="a100").update(capacity_type=Flavor.Capacity.SPOT)
    answer = cards(tenancy)["four"].answer
    assert answer.sentence == "Your team holds too few A100 (spot)"
    assert answer.detail.startswith("It takes 4 × A100 (spot); ")


def test_more_than_the_cluster_has_in_all_is_not_asked_for(
    lead: User, ada: User, tenancy: Tenancy
) -> None:
    """The form for it would say that it is not possible."""
    offer(lead, GPU.format(slug="four", gpus=4))
    Flavor.objects.filter(cluster=tenancy.cluster, name="a100").update(gpus_total=3)
    card = cards(tenancy)["four"]
    assert (card.answer.outcome, card.answer.lacks) == (Outcome.NOT_HELD, 0)
    assert card.answer.detail.endswith("Training has 3 in all.")
    assert not card.verdict["hint"]


def test_what_is_not_for_the_team_or_not_on_the_cluster_says_so(
    lead: User, ada: User, tenancy: Tenancy
) -> None:
    factories.team("Speech")
    factories.flavor(factories.cluster("elsewhere"), "h100", product="H100")
    offer(lead, f"{CPU}teams: [speech]\n")
    offer(lead, GPU.format(slug="far", gpus=1).replace("flavor: a100", "flavor: h100"))
    found = cards(tenancy)
    assert found["cpu"].answer.detail == "This profile is not for your team."
    assert (found["far"].answer.sentence, found["far"].answer.ask) == (
        "Not on this cluster",
        "",
    )
    assert found["far"].answer.detail == "Training has no H100. Elsewhere has."
    assert (found["far"].size, found["far"].price) == (
        "1 × H100 80 GB · 8 CPU · 64 GiB",
        "",
    )
    assert {one.answer.outcome for one in found.values()} == {Outcome.REFUSED}


def test_cards_stand_in_the_order_of_their_answers(
    lead: User, ada: User, tenancy: Tenancy
) -> None:
    factories.team("Speech")
    offer(lead, f"{CPU}teams: [speech]\norder: 1\n")
    offer(lead, GPU.format(slug="four", gpus=4) + "order: 2\n")
    offer(lead, GPU.format(slug="one", gpus=1) + "order: 3\n")
    assert [*cards(tenancy)] == ["one", "four", "cpu"]


@pytest.mark.slow
def test_the_page_shows_cards_to_members_alone(
    lead: User, ada: User, tenancy: Tenancy
) -> None:
    offer(lead, CPU)
    offer(lead, GPU.format(slug="four", gpus=4))
    actions.deprecate("cpu", by=lead, reason="Its image is old.", successor="four")
    browser = Client()
    browser.force_login(ada)
    shown = browser.get("/teams/vision/notebooks").content.decode()
    for text in (
        "Not launched from here",
        "Ask for 2 GPUs",
        "Its image is old.",
        "/profiles/cpu/devcontainer.json",
        "vscode://ms-vscode-remote.remote-containers/cloneInVolume?url=",
    ):
        assert text in shown
    assert "/teams/vision/notebooks" in browser.get("/teams/vision/").content.decode()
    browser.force_login(lead)
    assert (
        "People of the team choose its notebooks"
        in browser.get("/teams/vision/notebooks").content.decode()
    )
    browser.force_login(factories.person("Mallory Finch"))
    assert browser.get("/teams/vision/notebooks").status_code == 404


def test_a_team_without_a_namespace_or_profiles_reads_what_comes_first(
    ada: User, tenancy: Tenancy
) -> None:
    browser = Client()
    browser.force_login(ada)
    assert "No profile yet" in browser.get("/teams/vision/notebooks").content.decode()
    empty = factories.team("Speech")
    factories.join(empty, ada)
    assert (
        "No namespace for notebooks yet"
        in browser.get("/teams/speech/notebooks").content.decode()
    )


def test_the_api_tells_the_same_to_members_alone(
    lead: User, ada: User, tenancy: Tenancy
) -> None:
    offer(lead, GPU.format(slug="four", gpus=4))
    [told] = Caller(ada).get(f"places/{tenancy.pk}/profiles/").json()["results"]
    assert (told["profile"]["slug"], told["usd_per_hour"]) == ("four", "14.6800")
    assert (told["answer"]["outcome"], told["answer"]["lacks"]) == ("not_held", 2)
    assert told["answer"]["ask"].startswith("/requests/new/gpus?")
    assert Caller(lead).get(f"places/{tenancy.pk}/profiles/").status_code == 404
    assert Caller(ada).get("places/999999/profiles/").status_code == 404


def test_a_development_container_is_of_a_profile_that_people_can_choose(
    lead: User, ada: User
) -> None:
    actions.save(CPU, by=lead, now=timezone.now())
    browser = Client()
    browser.force_login(ada)
    assert browser.get("/profiles/cpu/devcontainer.json").status_code == 404
    assert Caller(ada).get("profiles/cpu/devcontainer/").status_code == 404
    actions.publish("cpu", by=lead)
    file = browser.get("/profiles/cpu/devcontainer.json")
    assert (
        file.headers["Content-Disposition"]
        == 'attachment; filename="devcontainer.json"'
    )
    assert file.json()["image"] == "registry.example.com/notebook/scipy:2026"
    assert (
        Caller(ada).get("profiles/cpu/devcontainer/").json()["json"]
        == file.content.decode()
    )


@pytest.mark.slow
@pytest.mark.parametrize("many", [5, 40])
def test_the_cards_ask_as_often_for_many_profiles_as_for_few(
    lead: User, ada: User, tenancy: Tenancy, many: int
) -> None:
    for number in range(many):
        offer(lead, GPU.format(slug=f"gpu-{number}", gpus=1 + number % 4))
    cards_of(
        tenancy, now=timezone.now()
    )  # reads once for the whole process which installation this is
    with CaptureQueriesContext(connection) as captured:
        assert len(cards_of(tenancy, now=timezone.now())) == many
    assert len(captured) == 6
    browser = Client()
    browser.force_login(ada)
    with CaptureQueriesContext(connection) as captured:
        browser.get("/teams/vision/notebooks")
    assert len(captured) == 16
