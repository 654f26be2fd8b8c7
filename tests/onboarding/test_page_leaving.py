"""The pages of a team's leaving: asked for, looked at with evidence, confirmed with the name typed, taken along."""

import csv
import io
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from accounts.models import User
from approvals.decisions.actions import approve
from notices.models import Notice
from offboarding import actions
from offboarding.models import Departure
from offboarding.preview import seen
from offboarding.sweep import sweep
from provisioning.models import Tenancy
from tests import factories
from tests.onboarding.parting import Parting, parting
from tests.provisioning.conftest import Place
from ui.amounts import moment

PAGE = "/teams/vision/leaving"


@pytest.fixture
def vision(place: Place) -> Parting:
    """The team on its cluster."""
    return parting(place)


def browser(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


def said(vision: Parting, **changes: str) -> dict[str, str]:
    usual = {
        "cluster": str(vision.place.tenancy.pk),
        "leaves_at": "",
        "running": "finish",
        "retention_days": "14",
        "reason": "The project is over.",
        "token": "one",
    }
    return usual | changes


def text(answer: Any) -> str:
    return " ".join(answer.content.decode().split())


@pytest.mark.slow
def test_asking_leads_to_a_page_with_everything_that_goes(vision: Parting) -> None:
    factories.request(
        vision.ada, vision.tenancy, vision.place.a100, now=vision.place.time
    )
    factories.request(
        vision.ada, vision.tenancy, vision.place.a100, gpus=4, now=vision.place.time
    )
    client = browser(vision.ada)
    answer = client.post(PAGE, said(vision))
    departure = Departure.objects.get()
    assert (answer.status_code, answer["Location"]) == (302, f"{PAGE}/{departure.pk}")
    assert (departure.hold, departure.retention_days, departure.is_whole) == (
        True,
        14,
        False,
    )
    shown = text(client.get(answer["Location"]))
    for part in (
        "datasets",
        "100 GiB",
        "Read from the cluster",
        "1 × A100",
        "4 × A100",
        "ClusterQueue",
        "Ada Okafor",
        "What stays",
        "Kept for 14 days",
        "The project is over.",
    ):
        assert part in shown, part
    assert "Type <strong>" not in shown
    claims = departure.places.get().claims
    assert claims == [
        {"name": "datasets", "size": "100Gi", "is_bound": claims[0]["is_bound"]}
    ]


def test_sent_twice_it_is_asked_for_once(vision: Parting) -> None:
    client = browser(vision.ada)
    first, second = client.post(PAGE, said(vision)), client.post(PAGE, said(vision))
    assert first["Location"] == second["Location"]
    assert Departure.objects.count() == 1


@pytest.mark.slow
def test_a_platform_lead_takes_the_protection_off_and_confirms(vision: Parting) -> None:
    departure = vision.ask()
    client, page = browser(vision.priya), f"{PAGE}/{departure.pk}"
    assert "Take the protection off</a> first" in text(client.get(page))
    off = client.post(
        f"/tenancies/{vision.place.tenancy.pk}/protection", {"is_protected": "no"}
    )
    assert (off.status_code, off["Location"]) == (302, PAGE)
    assert "Type <strong><bdi>Vision</bdi></strong> to confirm" in text(
        client.get(page)
    )
    wrong = client.post(
        page, {"do": "confirm", "name": "vision", "seen": seen(departure)}
    )
    assert (wrong.status_code, "Type the team’s name" in text(wrong)) == (422, True)
    done = client.post(
        page, {"do": "confirm", "name": "Vision", "seen": seen(departure)}
    )
    assert done.status_code == 302
    assert Departure.objects.get().confirmed_by == vision.priya
    assert "Restore the team" in text(client.get(page))
    team = text(client.get("/teams/vision/"))
    assert "Nothing new is granted to a team that leaves." in team
    assert "appears here within seconds" not in team, "it cannot ask"
    sweep(now=timezone.now())
    assert "Restore everything but the GPUs" in text(client.get(page))
    back = client.post(page, {"do": "restore"}, follow=True)
    assert "Everything but the GPUs comes back" in text(back)
    assert Tenancy.objects.get(pk=vision.place.tenancy.pk).is_here


@pytest.mark.slow
def test_what_waits_to_be_confirmed_names_no_date_that_its_confirmation_moves(
    vision: Parting,
) -> None:
    departure = vision.ask()
    vision.unprotect()
    days = timedelta(days=20)
    Departure.objects.update(
        asked_at=departure.asked_at - days, leaves_at=departure.leaves_at - days
    )
    priya = browser(vision.priya)
    page = text(priya.get(f"{PAGE}/{departure.pk}"))
    kept = timezone.now() + timedelta(days=departure.retention_days)
    assert (
        f">{kept:%a} {kept.day} {kept:%b}" in page.partition("deleted for good on")[2]
    )
    assert "As soon as it is confirmed" in page
    assert "as soon as it is confirmed" in text(priya.get(PAGE))
    actions.withdraw(departure.pk, by=vision.ada, now=timezone.now())
    assert (
        "as soon as it is confirmed"
        not in text(priya.get(PAGE)).partition("Asked for so far")[2]
    )


def test_who_is_restored_before_work_has_stopped_has_their_gpus_and_is_told_so(
    vision: Parting,
) -> None:
    departure = vision.go(leaves_at=timezone.now() + timedelta(days=2))
    client, page = browser(vision.priya), f"{PAGE}/{departure.pk}"
    assert "Restore the team" in text(client.get(page))
    back = text(client.post(page, {"do": "restore"}, follow=True))
    assert "Nothing had ended yet: the team holds its GPUs and pays them" in back
    assert "ask for GPUs again" not in back
    told = Notice.objects.filter(person=vision.ada).latest("id").said.sentence
    assert told.endswith(
        "the team holds its GPUs and pays them as before. Requests that were withdrawn stay so."
    )


def test_who_is_restored_on_its_date_before_anything_ended_is_told_so(
    vision: Parting,
) -> None:
    departure = vision.go(leaves_at=timezone.now())
    client, page = browser(vision.priya), f"{PAGE}/{departure.pk}"
    back = text(client.post(page, {"do": "restore"}, follow=True))
    assert "Nothing had ended yet" in back
    assert "holds and pays them as before" in text(client.get(page))


@pytest.mark.slow
def test_a_list_of_departures_costs_the_same_however_many(vision: Parting) -> None:
    def queries() -> int:
        client = browser(vision.priya)
        with CaptureQueriesContext(connection) as asked:
            client.get(PAGE)
        return len(asked)

    for _ in range(2):
        departure = vision.ask()
        actions.withdraw(departure.pk, by=vision.ada, now=timezone.now())
    few = queries()
    for _ in range(6):
        departure = vision.ask()
        actions.withdraw(departure.pk, by=vision.ada, now=timezone.now())
    assert queries() == few


@pytest.mark.slow
def test_what_has_changed_since_is_shown_anew(vision: Parting) -> None:
    departure = vision.ask()
    vision.unprotect()
    before = seen(departure)
    factories.request(
        vision.ada, vision.tenancy, vision.place.a100, now=vision.place.time
    )
    answer = browser(vision.priya).post(
        f"{PAGE}/{departure.pk}", {"do": "confirm", "name": "Vision", "seen": before}
    )
    assert (answer.status_code, "It changed while you looked" in text(answer)) == (
        412,
        True,
    )
    assert Departure.objects.get().confirmed_at is None


@pytest.mark.slow
@pytest.mark.parametrize("do", ["confirm", "withdraw", "restore", "agree"])
def test_a_get_changes_nothing(vision: Parting, do: str) -> None:
    departure = vision.ask()
    vision.unprotect()
    answer = browser(vision.priya).get(
        f"{PAGE}/{departure.pk}", {"do": do, "name": "Vision", "seen": seen(departure)}
    )
    assert answer.status_code == 200
    found = Departure.objects.get()
    assert (found.confirmed_at, found.ended_at) == (None, None)


def test_a_cluster_that_is_away_is_said_and_what_was_seen_before_stands(
    vision: Parting,
) -> None:
    departure = vision.ask()
    client, page = browser(vision.ada), f"{PAGE}/{departure.pk}"
    client.get(page)
    vision.place.kubernetes.fail(times=100, status=503)
    shown = text(client.get(page))
    assert "could not be read" in shown
    assert "datasets" in shown


def test_a_stranger_finds_no_such_page(vision: Parting) -> None:
    departure = vision.ask()
    client = browser(vision.mallory)
    for page in (PAGE, f"{PAGE}/{departure.pk}", f"{PAGE}/{departure.pk}/export.json"):
        assert client.get(page).status_code == 404
    assert client.post(f"{PAGE}/{departure.pk}", {"do": "withdraw"}).status_code == 404


@pytest.mark.slow
def test_it_is_taken_along_as_json_and_csv_until_and_after_it_is_gone(
    vision: Parting,
) -> None:
    factories.request(
        vision.ada, vision.tenancy, vision.place.a100, now=vision.place.time
    )
    departure = vision.go()
    client, page = browser(vision.ada), f"{PAGE}/{departure.pk}"
    client.get(page)
    vision.pass_by(seconds=5)
    vision.pass_by(days=31)
    vision.until_gone(departure)
    found = client.get(f"{page}/export.json").json()
    assert [claim["name"] for claim in found["claims"]] == ["datasets"]
    assert [row["gpus"] for row in found["holdings"]] == [1]
    assert found["history"][-1]["kind"] == "departure.done"
    answer = client.get(f"{page}/export.csv")
    rows = list(csv.reader(io.StringIO(answer.content.decode())))
    assert (
        answer.headers["Content-Disposition"]
        == f'attachment; filename="vision-{departure.pk}.csv"'
    )
    assert {row[0] for row in rows[1:]} == {"claim", "member", "holding", "event"}
    assert "Nothing is left on a cluster." in text(client.get(page))


def test_a_name_that_a_spreadsheet_would_run_is_taken_along_as_text(
    vision: Parting,
) -> None:
    User.objects.filter(pk=vision.ada.pk).update(name="=HYPERLINK(1)")
    departure = vision.ask()
    body = browser(vision.ada).get(f"{PAGE}/{departure.pk}/export.csv").content.decode()
    assert "member,,'=HYPERLINK(1)," in body


@pytest.mark.slow
def test_a_stuck_finalizer_stands_on_the_page(vision: Parting) -> None:
    departure = vision.go()
    vision.pass_by(seconds=5)
    hold = {"metadata": {"finalizers": ["example.com/hold"]}}
    claim = ("v1", "PersistentVolumeClaim")
    vision.place.kubernetes.patch(
        claim, "datasets", vision.place.tenancy.namespace, hold
    )
    vision.pass_by(days=31)
    vision.place.kubernetes.terminate()
    vision.pass_by(seconds=61)
    shown = text(browser(vision.ada).get(f"{PAGE}/{departure.pk}"))
    assert "Training takes longer" in shown
    assert "example.com/hold in 1 resource instances" in shown


@pytest.mark.slow
def test_what_a_leaving_team_holds_ends_when_it_leaves_and_is_not_kept_longer(
    vision: Parting,
) -> None:
    now = timezone.now()
    held = factories.request(
        vision.ada, vision.tenancy, vision.place.a100, gpus=2, days=3, now=now
    )
    if held.state == "waiting":
        approve(held.pk, by=vision.priya, expected_version=held.version, now=now)
    vision.place.reconcile()
    held.refresh_from_db()
    client, page = browser(vision.ada), f"/requests/{held.pk}/"
    assert f"/allocations/{held.allocation_id}/renew" in text(client.get(page))
    leaves = now + timedelta(days=1)
    vision.go(leaves_at=leaves)
    shown = " ".join(text(client.get(page)).split())
    assert f"until {moment(leaves, now)}, when the team leaves" in shown
    assert f"/allocations/{held.allocation_id}/renew" not in shown
    form = text(client.get("/requests/new"))
    assert "Vision leaves " in form
    assert "is on no cluster yet" not in form
