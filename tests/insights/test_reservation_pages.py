"""The pages of capacity reservations: who sees which, how one stands, giving machines back, and what is orphaned."""

from datetime import timedelta
from decimal import Decimal

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from accounts.roles import Role
from allocations.budgets.money import cost_of
from allocations.models import Allocation
from audit.models import Event
from capacity.models import Orphan, Reservation
from capacity.reservations.naming import pool_name
from insights.reservations import listing
from provisioning.clusters import installation
from tests import factories
from tests.capacity.connected import Site
from tests.capacity.orphan_attacks import orphan
from tests.capacity.price_attacks import price
from tests.pages import parsed
from tests.scene import Scene, scene
from workloads.models import ClusterObject

pytestmark = pytest.mark.django_db
LIST = "/capacity/reservations/"


@pytest.fixture
def team(db: None) -> Scene:
    """Ada's team, without Azure."""
    return scene()


def words(client: Client, path: str, status: int = 200) -> str:
    """All that a page says."""
    answer = client.get(path)
    assert answer.status_code == status, answer.content[:500]
    return parsed(answer.content.decode()).words


def queries(client: Client, path: str) -> int:
    """How many queries a page takes."""
    with CaptureQueriesContext(connection) as seen:
        assert client.get(path).status_code == 200
    return len(seen)


def page(row: Reservation) -> str:
    """Its address."""
    return f"{LIST}{row.pk}"


@pytest.mark.slow
def test_members_see_their_teams_ones_and_whoever_sees_all_teams_all(
    team: Scene, client: Client
) -> None:
    own = factories.reservation(team.team)
    other = factories.reservation(factories.team("Speech"))
    for person, seen in (
        (team.ada, [own]),
        (team.mallory, []),
        (team.priya, [own, other]),
        (team.elena, [own, other]),
        (factories.person("Sam Achebe", Role.AUDITOR), [own, other]),
    ):
        client.force_login(person)
        said = client.get(LIST).content.decode()
        assert [row for row in (own, other) if f'href="{page(row)}"' in said] == seen
        for row in (own, other):
            assert client.get(page(row)).status_code == (200 if row in seen else 404)


def test_an_empty_list_leads_to_the_form(team: Scene, client: Client) -> None:
    client.force_login(team.ada)
    said = client.get(LIST).content.decode()
    assert "Nothing is reserved" in said
    assert "/requests/new/reservation" in said


def test_the_list_says_what_each_costs_idle_and_leaves_out_what_is_released(
    team: Scene, client: Client
) -> None:
    row = factories.reservation(team.team, machines=4, used=1)
    factories.reserved_days(row, [1, 1])
    factories.reservation(
        team.team,
        machines=0,
        vm_size="Standard_OLD",
        state="released",
        released_at=timezone.now(),
    )
    client.force_login(team.ada)
    said = words(client, LIST)
    assert "1 of 4" in said
    assert "Standard_OLD" not in said
    assert "Standard_OLD" in words(client, f"{LIST}?state=released")
    assert "No reservation fits" in words(client, f"{LIST}?state=pending")


@pytest.mark.parametrize(
    "query",
    [
        "?state=nothing",
        "?team=nobody",
        "?before=x",
        "?before=99999999999999999999999",
        "?after=-1",
        "?x=1",
    ],
)
def test_an_address_that_nobody_gave_out_shows_the_list(
    team: Scene, client: Client, query: str
) -> None:
    factories.reservation(team.team)
    client.force_login(team.ada)
    assert client.get(LIST + query).status_code == 200


def test_pages_of_the_list_lead_to_each_other(team: Scene, client: Client) -> None:
    rows = [factories.reservation(team.team) for _ in range(30)]
    client.force_login(team.ada)
    first = client.get(LIST).content.decode()
    assert f"?before={rows[5].pk}" in first
    second = client.get(f"{LIST}?before={rows[5].pk}").content.decode()
    assert page(rows[4]) in second
    assert f"?after={rows[4].pk}" in second
    back = client.get(f"{LIST}?after={rows[4].pk}").content.decode()
    assert page(rows[29]) in back
    assert page(rows[4]) + '"' not in back


def test_lists_take_as_many_queries_for_fifty_as_for_five(
    team: Scene, client: Client
) -> None:
    client.force_login(team.priya)
    counts = []
    for more in (5, 45):
        for number in range(more):
            factories.reserved_days(factories.reservation(team.team), [1, 2])
            orphan(key=f"{more}-{number}")
        counts.append(queries(client, LIST))
    assert counts[0] == counts[1] <= 12, counts


def test_a_page_takes_as_many_queries_for_fifty_days_and_pods_as_for_five(
    team: Scene, client: Client
) -> None:
    client.force_login(team.ada)
    installation.mark()  # A process reads it once, whoever asks first.
    counts = []
    for number in (5, 50):
        row = factories.reservation(team.team, flavor=team.flavor)
        factories.reserved_days(row, [1] * number)
        nodes_with_pods(team, row, pods=number)
        counts.append(queries(client, page(row)))
    assert counts[0] == counts[1] <= 12, counts


def test_more_than_is_reserved_is_shown_as_without_a_guarantee(
    team: Scene, client: Client
) -> None:
    row = factories.reservation(team.team, machines=4, used=4, over=3)
    client.force_login(team.ada)
    said = words(client, page(row))
    assert "3 run beyond what is reserved, without a guarantee." in said
    assert "Over-allocated" in said


def test_idle_machines_are_advised_to_be_released_by_a_button_that_is_filled_in(
    team: Scene, client: Client
) -> None:
    row = factories.reservation(team.team, machines=4, used=2)
    factories.reserved_days(row, [2, 1, 2, 2])
    factories.machines_of(row, team.ada, count=4)
    client.force_login(team.ada)
    answer = client.get(page(row)).content.decode()
    assert "Release 2" in answer
    assert f"{page(row)}/give-back?machines=2" in answer
    client.force_login(factories.person("Sam Achebe", Role.AUDITOR))
    assert "give-back" not in client.get(page(row)).content.decode()


def test_what_is_used_beyond_is_advised_to_grow_by_a_form_that_is_filled_in(
    team: Scene, client: Client
) -> None:
    row = factories.reservation(team.team, machines=4, used=4, over=2)
    factories.reserved_days(row, [6, 6, 6], over=50)
    factories.machines_of(row, team.ada, count=4)
    client.force_login(team.ada)
    answer = client.get(page(row)).content.decode()
    assert "Reserve 2 more" in answer
    assert "instances=2" in answer
    assert "vm_size=Standard_NC24ads_A100_v4" in answer


def test_the_days_are_drawn_and_stand_in_a_table_with_what_they_cost(
    team: Scene, client: Client
) -> None:
    row = factories.reservation(team.team, machines=4, used=1)
    factories.reserved_days(row, [1, 1, 1])
    client.force_login(team.ada)
    answer = client.get(page(row)).content.decode()
    assert "line-chart__idle" in answer
    assert "Machines reserved and in use, day by day" in answer
    # 75 % of what it costs is for idle machines, whatever the hour of the day.
    assert "75 % of the cost" in answer


def test_who_runs_on_its_nodes_is_named_to_whom_may_know(
    team: Scene, client: Client
) -> None:
    row = factories.reservation(team.team, flavor=team.flavor)
    nodes_with_pods(team, row, pods=3)
    strangers = factories.tenancy(factories.team("Speech"), team.flavor.cluster)
    nodes_with_pods(team, row, pods=2, namespace=strangers.namespace)
    client.force_login(team.ada)
    said = words(client, page(row))
    assert team.tenancy.namespace in said
    assert "teams that you do not see" in said
    assert strangers.namespace not in said
    client.force_login(team.priya)
    assert strangers.namespace in words(client, page(row))


def test_a_parked_one_is_tried_again_by_platform_leads_alone(
    team: Scene, client: Client
) -> None:
    row = factories.reservation(
        team.team, parked_at=timezone.now(), message="5 tries ended."
    )
    client.force_login(team.ada)
    assert "Try again" not in words(client, page(row))
    assert client.post(f"{page(row)}/retry").status_code == 403
    client.force_login(team.priya)
    assert "Try again" in words(client, page(row))
    assert client.post(f"{page(row)}/retry").status_code == 302
    row.refresh_from_db()
    assert row.parked_at is None
    assert Event.objects.filter(kind="reservation.tried_again").exists()


def test_what_is_released_is_not_tried_and_says_so(team: Scene, client: Client) -> None:
    row = factories.reservation(
        team.team, machines=0, state="released", released_at=timezone.now()
    )
    client.force_login(team.priya)
    assert client.post(f"{page(row)}/retry").status_code == 302
    assert "there is nothing to try" in words(client, page(row))


@pytest.mark.slow
def test_machines_are_given_back_once_and_azure_gets_less(
    here: Site, client: Client
) -> None:
    grant = here.grant(3)
    here.work()
    row = Reservation.objects.get()
    client.force_login(here.scene.ada)
    form = f"{page(row)}/give-back"
    shown = words(client, f"{form}?machines=2")
    assert "Give back 2 machines" in shown
    assert "1 machine of this grant stays yours until" in shown
    for _ in range(2):
        answer = client.post(
            form, {"grant": grant.pk, "machines": "2", "token": "once"}
        )
        assert (answer.status_code, answer["Location"]) == (302, page(row))
    grant.refresh_from_db()
    assert (grant.count, grant.ended_at) == (1, None)
    here.work()
    assert list(here.in_azure().values()) == [1]


def test_machines_that_azure_does_not_keep_yet_free_all_of_their_time(
    here: Site, client: Client
) -> None:
    grant = here.grant(3)
    begun = grant.starts_at - timedelta(days=2)
    Allocation.objects.filter(pk=grant.pk).update(starts_at=begun)
    client.force_login(here.scene.ada)
    form = f"{page(Reservation.objects.get())}/give-back"
    effect = client.get(form, {"machines": "2"}).context["effect"]
    each = grant.usd_per_hour / 3
    assert effect.freed_usd == cost_of(
        usd_per_hour=2 * each, start=begun, end=grant.until
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("sent", "status", "sentence"),
    [
        ({"machines": "4"}, 409, "4 cannot be given back: 3 are held."),
        ({"machines": "0"}, 422, "Write a whole number of machines"),
        ({"machines": "10000"}, 422, "Write a whole number of machines"),
        ({"machines": "two"}, 422, "Write a whole number of machines"),
        ({"machines": ""}, 422, "Say how many."),
        ({"grant": "999999"}, 422, "Choose one of the grants that are held now."),
        ({"more": "1"}, 422, "There is no field “more” here."),
    ],
)
def test_what_cannot_be_given_back_is_refused_and_changes_nothing(
    here: Site, client: Client, sent: dict[str, str], status: int, sentence: str
) -> None:
    grant = here.grant(3)
    row = Reservation.objects.get()
    client.force_login(here.scene.ada)
    answer = client.post(
        f"{page(row)}/give-back", {"grant": grant.pk, "machines": "1"} | sent
    )
    assert answer.status_code == status
    assert sentence in parsed(answer.content.decode()).words
    grant.refresh_from_db()
    assert (grant.count, grant.ended_at) == (3, None)


@pytest.mark.slow
def test_a_request_and_a_team_lead_to_the_reservation(
    here: Site, client: Client
) -> None:
    grant = here.grant(2)
    row = Reservation.objects.get()
    client.force_login(here.scene.ada)
    for path in (
        f"/requests/{grant.hold.request_id}/",
        f"/teams/{here.scene.team.slug}/",
        "/capacity/",
    ):
        answer = client.get(path, follow=True).content.decode()
        assert (LIST if path == "/capacity/" else page(row)) in answer


def test_what_is_orphaned_is_shown_to_platform_leads_with_its_cost(
    team: Scene, client: Client
) -> None:
    orphan(vm_size="Standard_NC24ads_A100_v4", group="qm-lost", machines=2)
    orphan(kind="foreign", key="x", group="theirs", vm_size="Standard_Unpriced")
    client.force_login(team.priya)
    said = words(client, LIST)
    assert "qm-lost" in said
    assert "$7.35" in said
    assert "Other people’s reservations in these subscriptions (1)" in said
    assert "no price" in said
    for person in (team.ada, team.elena):
        client.force_login(person)
        assert "qm-lost" not in words(client, LIST)


def test_other_peoples_reservations_push_no_orphan_off_the_list(
    team: Scene, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listing, "MAX_ORPHANS", 2)
    orphan(group="qm-lost")
    for number in range(3):
        orphan(kind="foreign", key=f"foreign/{number}", group=f"theirs-{number}")
    client.force_login(team.priya)
    said = words(client, LIST)
    assert "qm-lost" in said
    assert "theirs-1" in said
    assert "theirs-2" not in said


def test_an_orphan_costs_what_azures_list_says_of_its_region(
    team: Scene, client: Client
) -> None:
    size = "Standard_NC24ads_A100_v4"
    orphan(vm_size=size, region="westeurope", machines=2)
    price(size=size, region="westeurope", on_demand=Decimal(4), seen_at=timezone.now())
    client.force_login(team.priya)
    assert "Orphaned No team was granted it. 0 of 2 $8 " in words(client, LIST)


def test_released_ones_are_within_reach_where_nothing_else_is(
    team: Scene, client: Client
) -> None:
    factories.reservation(
        team.team, machines=0, state="released", released_at=timezone.now()
    )
    client.force_login(team.ada)
    answer = client.get(LIST).content.decode()
    assert "Nothing is reserved" in parsed(answer).words
    assert "Any state" in answer


def test_a_platform_lead_has_an_orphan_released_and_nobody_else(
    team: Scene, client: Client
) -> None:
    row = orphan()
    client.force_login(team.ada)
    assert client.get(f"/capacity/orphans/{row.pk}").status_code == 403
    assert client.post(f"/capacity/orphans/{row.pk}").status_code == 403
    client.force_login(team.priya)
    assert "Release it" in words(client, f"/capacity/orphans/{row.pk}")
    assert client.post(f"/capacity/orphans/{row.pk}").status_code == 302
    assert Orphan.objects.get().release_asked_by == "Priya Raman"
    assert "Being released" in words(client, LIST)


def test_an_orphan_that_machines_use_is_refused_with_the_reason(
    team: Scene, client: Client
) -> None:
    row = orphan(associated=2)
    client.force_login(team.priya)
    said = words(client, f"/capacity/orphans/{row.pk}")
    assert "2 machines use it" in said
    assert "Release it" not in said
    answer = client.post(f"/capacity/orphans/{row.pk}")
    assert answer.status_code == 409
    assert "2 machines use it" in parsed(answer.content.decode()).words
    assert Orphan.objects.get().release_asked_at is None


def test_reservations_of_others_have_no_page_on_which_they_are_released(
    team: Scene, client: Client
) -> None:
    row = orphan(kind="foreign")
    client.force_login(team.priya)
    assert client.get(f"/capacity/orphans/{row.pk}").status_code == 404
    assert client.post(f"/capacity/orphans/{row.pk}").status_code == 404


def nodes_with_pods(
    team: Scene, row: Reservation, *, pods: int, namespace: str = ""
) -> None:
    """A node that is made of a reservation, as the copy of the cluster has it, with pods of one GPU each."""
    space, cluster = namespace or team.tenancy.namespace, team.flavor.cluster
    name = f"node-{row.pk}-{space}"
    labels = {"kubernetes.azure.com/agentpool": pool_name(row.pk)}
    ClusterObject.objects.create(
        cluster=cluster,
        kind="Node",
        name=name,
        body={"metadata": {"name": name, "labels": labels}},
    )
    container = {"name": "main", "resources": {"requests": {"nvidia.com/gpu": "1"}}}
    ClusterObject.objects.bulk_create(
        ClusterObject(
            cluster=cluster,
            kind="Pod",
            namespace=space,
            name=f"{name}-{number}",
            body={
                "metadata": {"name": f"{name}-{number}", "namespace": space},
                "spec": {"nodeName": name, "containers": [container]},
                "status": {"phase": "Running"},
            },
        )
        for number in range(pods)
    )
