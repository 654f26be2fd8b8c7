"""A team with several namespaces on one cluster: made by asking, told apart by project and environment."""

import re
from datetime import timedelta
from typing import Any

import pytest
from django.db import IntegrityError, transaction
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from accounts.models import Project
from allocations.models import Allocation
from approvals.fulfilment.actions import release
from approvals.models import Request
from approvals.requests.actions import judge, submit
from approvals.requests.wanted import Wanted, resolve
from approvals.states import State
from fleet.models import Flavor
from manual.models import Task
from offboarding.models import DeparturePlace
from provisioning.models import Tenancy
from tests import factories
from tests.calling import Caller
from tests.scene import DAY, HOUR, NOW, Scene
from web.refusals import BadInput, Refused

GPUS = {"flavor": "training/a100", "gpus": 1, "purpose": "training"}
NAMESPACE = {"cluster": "training", "environment": "test", "project": "main"}


@pytest.fixture
def second(scene: Scene) -> Tenancy:
    """A test namespace of the same project on the cluster where it has one for development."""
    return factories.tenancy(scene.team, scene.flavor.cluster, environment="test")


def wanted(scene: Scene, key: str, spec: dict[str, Any], namespace: str = "") -> Wanted:
    return resolve(
        key,
        spec,
        team=scene.team,
        until=NOW + DAY,
        reason="For a test.",
        namespace=namespace,
    )


def form(scene: Scene, **values: str) -> dict[str, str]:
    until = (timezone.now() + timedelta(days=1)).strftime("%Y-%m-%dT%H:%M")
    usual = {
        "team": scene.team.slug,
        "until": until,
        "reason": "For a test.",
        "token": "one",
    }
    return usual | {name: str(value) for name, value in GPUS.items()} | values


def test_a_project_gets_a_test_namespace_beside_the_one_for_development(
    scene: Scene,
) -> None:
    request = submit(wanted(scene, "namespace", NAMESPACE), by=scene.ada, now=NOW)
    made = Request.objects.select_related("tenancy__project").get(pk=request.pk).tenancy
    assert made is not None
    assert made != scene.tenancy
    assert (made.cluster, made.project, made.environment) == (
        scene.tenancy.cluster,
        scene.tenancy.project,
        "test",
    )
    assert made.namespace.startswith("qm-vision-main-test-")
    assert made.desired.namespace == made.namespace


def test_a_namespace_that_has_ended_is_had_again_and_nobody_takes_it_down(
    scene: Scene,
) -> None:
    first = submit(wanted(scene, "namespace", NAMESPACE), by=scene.ada, now=NOW)
    with pytest.raises(Refused, match="already"):
        wanted(scene, "namespace", NAMESPACE)
    release(first.pk, by=scene.ada, now=NOW + HOUR)
    task = Task.objects.get()
    assert "Leave a cluster" in dict(task.lines)["Leaves by"]
    again = submit(
        wanted(scene, "namespace", NAMESPACE), by=scene.ada, now=NOW + 2 * HOUR
    )
    assert again.state == State.APPROVED
    assert again.tenancy_id == Request.objects.get(pk=first.pk).tenancy_id
    assert Task.objects.get().state == "dropped"
    # What came with the team was granted by nobody, and is there already.
    with pytest.raises(Refused, match="already"):
        wanted(scene, "namespace", NAMESPACE | {"environment": "dev"})


def test_a_second_project_has_a_namespace_of_its_own_name(scene: Scene) -> None:
    request = submit(
        wanted(scene, "namespace", NAMESPACE | {"project": "speech"}),
        by=scene.ada,
        now=NOW,
    )
    made = Request.objects.select_related("tenancy__project").get(pk=request.pk).tenancy
    assert made is not None
    assert made.namespace.startswith("qm-vision-speech-")
    assert Project.objects.filter(team=scene.team).count() == 2


def test_people_decide_about_a_namespace_for_production(scene: Scene) -> None:
    request = submit(
        wanted(scene, "namespace", NAMESPACE | {"environment": "production"}),
        by=scene.ada,
        now=NOW,
    )
    assert request.state == State.WAITING


def test_the_same_environment_of_a_project_is_refused_by_the_database(
    scene: Scene, second: Tenancy
) -> None:
    name = "a_project_has_an_environment_on_a_cluster_once"
    with pytest.raises(IntegrityError, match=name), transaction.atomic():
        Tenancy.objects.filter(pk=second.pk).update(environment="dev")


def test_gpus_go_where_they_are_asked_for(scene: Scene, second: Tenancy) -> None:
    for place in (scene.tenancy, second):
        submit(wanted(scene, "gpus", GPUS, place.namespace), by=scene.ada, now=NOW)
    granted = Allocation.objects.values_list("tenancy", "gpus")
    assert sorted(granted) == sorted([(scene.tenancy.pk, 1), (second.pk, 1)])
    specs = [
        Tenancy.objects.get(pk=place.pk).desired for place in (scene.tenancy, second)
    ]
    assert [flavor.gpus for spec in specs for flavor in spec.flavors] == [1, 1]


def used(place: Tenancy, flavor: Flavor, *, held: int, percent: int) -> None:
    """What an hour and more of looks saw of the GPUs that a namespace holds since yesterday."""
    place.use_days.create(
        flavor=flavor,
        day=NOW.date(),
        samples=100,
        held_sum=100 * held,
        used_sum=percent * held,
        last_at=NOW,
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("first", "others", "outcome"),
    [
        pytest.param(0, None, "people", id="idle in one"),
        pytest.param(0, 100, "people", id="two of three idle"),
        pytest.param(100, 0, "automatic", id="one of three idle"),
    ],
)
def test_what_is_idle_in_one_namespace_counts_in_every_other_of_the_cluster(
    scene: Scene, second: Tenancy, first: int, others: int | None, outcome: str
) -> None:
    factories.request(
        scene.ada, scene.tenancy, scene.flavor, gpus=2, days=9, now=NOW - 2 * DAY
    )
    used(scene.tenancy, scene.flavor, held=2, percent=first)
    if others is not None:
        factories.request(
            scene.ada, second, scene.flavor, gpus=1, days=9, now=NOW - 2 * DAY
        )
        used(second, scene.flavor, held=1, percent=others)
    asked = wanted(scene, "gpus", GPUS, namespace=second.namespace)
    judged = judge(asked, person=scene.ada, now=NOW)
    held = 2 if others is None else 3
    assert judged.answer.outcome == outcome
    [rule] = [rule for rule in judged.answer.rules if rule.code == "use"]
    assert (rule.holds, rule.value[1]) == (outcome == "automatic", held)
    # The quota of the namespace is its own.
    assert judged.standing.held_gpus == held - 2


def test_what_a_team_holds_on_another_cluster_says_nothing_of_this_one(
    scene: Scene, second: Tenancy
) -> None:
    elsewhere = factories.flavor(factories.cluster("inference"), "a100")
    place = factories.tenancy(scene.team, elsewhere.cluster)
    factories.request(scene.ada, place, elsewhere, gpus=2, days=9, now=NOW - 2 * DAY)
    used(place, elsewhere, held=2, percent=0)
    asked = wanted(scene, "gpus", GPUS, namespace=second.namespace)
    assert judge(asked, person=scene.ada, now=NOW).standing.team_held_gpus == 0


def test_an_ask_names_the_namespace_where_there_are_several(
    scene: Scene, second: Tenancy
) -> None:
    with pytest.raises(BadInput) as refused:
        wanted(scene, "gpus", GPUS)
    assert (refused.value.code, refused.value.field) == (
        "choose_namespace",
        "namespace",
    )
    assert second.namespace in refused.value.message
    assert f"on {second.cluster.title}." in refused.value.message


@pytest.mark.parametrize("namespace", ["default", "qm-vision-main-000000"])
def test_only_the_teams_own_namespaces_can_be_named(
    scene: Scene, namespace: str
) -> None:
    with pytest.raises(Refused) as refused:
        wanted(scene, "gpus", GPUS, namespace)
    assert (refused.value.code, refused.value.field) == ("not_there", "namespace")
    title = scene.tenancy.cluster.title
    assert refused.value.message == f"Vision has no such namespace on {title}."


def test_what_leaves_is_no_choice(scene: Scene, second: Tenancy) -> None:
    Tenancy.objects.filter(pk=second.pk).update(
        stage="leaving", is_protected=False, leaves_at=NOW
    )
    assert wanted(scene, "gpus", GPUS).tenancy == scene.tenancy


def test_the_api_takes_the_namespace_and_says_what_is_missing(
    scene: Scene, second: Tenancy
) -> None:
    ada = Caller(scene.ada)
    body = GPUS | {
        "team": "vision",
        "until": (timezone.now() + timedelta(days=1)).isoformat(),
        "reason": "Test.",
    }
    missing = ada.post("requests/", body)
    assert (missing.status_code, missing.json()["code"]) == (422, "choose_namespace")
    made = ada.post("requests/", body | {"namespace": second.namespace})
    assert made.status_code == 201
    assert Request.objects.get().tenancy == second
    elsewhere = ada.post("requests/", body | {"namespace": "kube-system"})
    assert (elsewhere.status_code, elsewhere.json()["code"]) == (422, "not_there")


def test_a_request_that_is_changed_stays_in_its_namespace(
    scene: Scene, second: Tenancy
) -> None:
    ada, now = Caller(scene.ada), timezone.now()
    sixteen = resolve(
        "gpus",
        GPUS | {"gpus": 16},
        team=scene.team,
        until=now + DAY,
        reason="For a test.",
        namespace=second.namespace,
    )
    asked = submit(sixteen, by=scene.ada, now=now)

    def change(body: dict[str, Any]) -> Any:
        seen = {"If-Match": f'"{Request.objects.get(pk=asked.pk).version}"'}
        return ada.send("PATCH", f"requests/{asked.pk}/", body, key=None, **seen)

    changed = change({"spec": {"gpus": 12}})
    assert changed.status_code == 200
    assert Request.objects.get().tenancy == second
    moved = change({"namespace": scene.tenancy.namespace})
    assert (moved.status_code, moved.json()["code"]) == (422, "another_namespace")


def test_the_form_asks_for_the_namespace_only_where_there_are_several(
    client: Client, scene: Scene
) -> None:
    client.force_login(scene.ada)
    address = "/requests/new?team=vision&flavor=training/a100&gpus=1"
    assert 'name="namespace"' not in client.get(address).content.decode()
    factories.tenancy(scene.team, scene.flavor.cluster, environment="test")
    shown = client.get(address).content.decode()
    assert re.findall(r"<option[^>]*>\s*(main · \w+)", shown) == [
        "main · Development",
        "main · Test",
    ]


@pytest.mark.slow
@pytest.mark.parametrize("address", ["/requests/new", "/requests/new/notebook"])
def test_the_page_asks_in_the_namespace_that_was_chosen(
    client: Client, scene: Scene, second: Tenancy, address: str
) -> None:
    client.force_login(scene.ada)
    values = form(scene, namespace=second.namespace)
    if address.endswith("notebook"):
        values = {
            name: value for name, value in values.items() if name != "purpose"
        } | {"profile": factories.notebooks_on(scene.flavor.cluster).slug}
    assert client.post(address, values).status_code == 302
    assert Request.objects.get().tenancy == second


def test_the_answer_is_about_the_namespace_that_the_form_shows(
    client: Client, scene: Scene, second: Tenancy
) -> None:
    client.force_login(scene.ada)
    shown = client.post(
        reverse("request-preview", args=["gpus"]),
        form(scene, namespace="qm-of-another-team"),
    ).content.decode()
    answered = re.search(r'name="answered" value="(\w+)"', shown)
    assert answered is not None
    stale = client.post(
        "/requests/new", form(scene, namespace=second.namespace, answered=answered[1])
    )
    assert stale.status_code == 422
    assert not Request.objects.exists()


def test_a_team_leaves_one_of_its_namespaces(scene: Scene, second: Tenancy) -> None:
    Tenancy.objects.update(is_protected=False)
    body = {
        "team": "vision",
        "namespaces": [second.namespace],
        "reason": "The test is over.",
    }
    left = Caller(scene.priya).post("departures/", body)
    assert left.status_code == 201
    places = DeparturePlace.objects.values_list("tenancy", flat=True)
    assert list(places) == [second.pk]
