"""The audit log's page: whose events, narrowed, paged, and the chain checked."""

from datetime import timedelta
from typing import Any
from urllib.parse import urlencode

import pytest
from django.db import connection, transaction
from django.test import Client
from django.utils import timezone
from django.utils.html import strip_tags
from pytest_django import DjangoAssertNumQueries

from accounts.memberships import PartChange, record_parts
from accounts.roles import Role
from accounts.tokens.actions import create_token, revoke_token
from audit.actors import PORTAL, Actor
from audit.events import Kind
from audit.log import count_refusal, record, refuse
from audit.models import Event
from portal.http.called_about import called_about
from portal.pages.audit import kinds_by_subject
from tests import factories
from tests.calling import Caller
from tests.scene import scene

pytestmark = pytest.mark.django_db


def text(client: Client, path: str) -> str:
    """A page that is there."""
    answer = client.get(path)
    assert answer.status_code == 200
    return answer.content.decode()


def happen(number: int, **fields: object) -> None:
    """Budgets set by Elena."""
    actor = factories.person("Elena Petrova").as_actor()
    with transaction.atomic():
        for _ in range(number):
            record(Kind.BUDGET_SET, actor=actor, **fields)  # type: ignore[arg-type]


def test_members_see_what_happened_in_their_teams_alone(client: Client) -> None:
    vision, speech = factories.team("Vision"), factories.team("Speech")
    happen(1, team_id=vision.pk, limit_usd="100")
    happen(1, team_id=speech.pk, limit_usd="999")
    happen(1, limit_usd="555")
    client.force_login(factories.person("Ada", teams=[vision]))
    page = text(client, "/audit/")
    assert "limit $100.00" in page
    assert "limit $999.00" not in page
    assert "limit $555.00" not in page
    assert f"/audit/?team={speech.slug}" not in page
    assert "limit $999.00" not in text(client, f"/audit/?team={speech.slug}")


def test_it_is_narrowed_to_one_thing_by_its_number(client: Client) -> None:
    vision = factories.team("Vision")
    happen(1, team_id=vision.pk, subject=("request", 12), limit_usd="100")
    happen(1, team_id=vision.pk, subject=("request", 13), limit_usd="999")
    happen(1, team_id=vision.pk, subject=("policy_draft", 12), limit_usd="555")
    client.force_login(factories.person("Ada", teams=[vision]))
    for about in ("request 12", "Request-12", "request #12", " request 0012 "):
        page = text(client, f"/audit/?{urlencode({'about': about})}")
        assert "limit $100.00" in page, about
        assert "limit $999.00" not in page
        assert "limit $555.00" not in page
    draft = text(client, "/audit/?about=policy+draft+12")
    assert "limit $555.00" in draft
    assert "limit $100.00" not in draft


def test_what_was_granted_under_a_request_is_about_it_too(client: Client) -> None:
    vision = factories.team("Vision")
    place = factories.tenancy(vision, factories.cluster("training"))
    ada = factories.person("Ada", teams=[vision])
    asked = factories.request(ada, place, factories.flavor(place.cluster), gpus=1)
    factories.request(ada, place, factories.flavor(place.cluster), gpus=2)
    client.force_login(ada)
    page = text(client, f"/audit/?about=request+{asked.pk}")
    assert "1 × A100 given to the team" in page
    assert "2 × " not in page


@pytest.mark.parametrize("about", ["lunch 12", "request", "12", "request twelve"])
def test_what_is_no_thing_with_a_number_is_said(client: Client, about: str) -> None:
    client.force_login(factories.person("Ada"))
    page = text(client, f"/audit/?{urlencode({'about': about})}")
    assert "such as request 12, policy 3 or team vision" in page
    assert "Nothing is shown while a filter cannot be taken as it is." in page
    assert "Nothing like that happened" not in page


def test_what_has_a_name_is_found_by_it(client: Client) -> None:
    vision, cluster = factories.team("Vision"), factories.cluster("training")
    centre = factories.cost_centre("CC-9999")
    client.force_login(factories.person("Sam", Role.AUDITOR))
    subjects = [
        ("team", vision.pk),
        ("cluster", cluster.pk),
        ("cost_centre", centre.pk),
    ]
    numbers = {}
    for subject in subjects:
        with transaction.atomic():
            numbers[subject[0]] = record(
                Kind.BUDGET_SET, actor=PORTAL, subject=subject
            ).seq
    for about, kind in (
        ("Team Vision", "team"),
        ("cluster training", "cluster"),
        (f"Cluster {cluster.title}", "cluster"),
        ("cost centre cc-9999", "cost_centre"),
    ):
        rows = client.get("/audit/", {"about": about}).context["rows"]
        links = [row["cells"][0]["href"] for row in rows]
        assert links == [f"/audit/{numbers[kind]}/"], about


def test_nobody_learns_of_cost_centres_of_others(client: Client) -> None:
    factories.cost_centre("CC-SECRET")
    client.force_login(factories.person("Ada"))
    for code in ("CC-SECRET", "CC-NOSUCH"):
        page = text(client, f"/audit/?{urlencode({'about': f'cost centre {code}'})}")
        assert "Write what it is and its number or name" in page, code


def test_a_token_is_named_where_it_was_created_and_revoked(client: Client) -> None:
    seen = scene()
    now = timezone.now()
    token, _ = create_token(
        user=seen.ada, name="nightly", scope="read", days=9, now=now
    )
    revoke_token(token, by=seen.ada, now=now)
    client.force_login(factories.person("Sam", Role.AUDITOR))
    for kind in ("created", "revoked"):
        [row] = client.get("/audit/", {"kind": f"token.{kind}"}).context["rows"]
        assert row["cells"][0]["text"] == f"Token nightly {kind}"
        assert row["cells"][0]["sub"].endswith("Ada Okafor")


def test_who_changed_the_people_of_a_team_is_named(client: Client) -> None:
    seen = scene()
    change = PartChange(seen.team.pk, "Ben Ruiz", "member", "lead")
    with transaction.atomic():
        record_parts([change], actor=seen.priya.as_actor())
    client.force_login(factories.person("Sam", Role.AUDITOR))
    [row] = client.get("/audit/", {"kind": "team.members_changed"}).context["rows"]
    what, _, _, details, _ = row["cells"]
    assert what["text"] == "Ben Ruiz leads it"
    assert what["sub"].endswith("Priya Raman")
    assert details["text"] == ""


def test_days_in_the_wrong_order_are_said(client: Client) -> None:
    client.force_login(factories.person("Ada"))
    page = text(client, "/audit/?since=2026-11-20&until=2026-11-19")
    assert "Choose the day From or a later one." in page


def test_an_auditor_sees_everything_and_narrows_it(client: Client) -> None:
    vision = factories.team("Vision")
    happen(1, team_id=vision.pk, limit_usd="100")
    refuse(
        actor=factories.person("Mallory Finch").as_actor(),
        reason="Not yours.",
        where="teams/new",
    )
    client.force_login(factories.person("Sam", Role.AUDITOR))
    assert "Not yours." in text(client, "/audit/")
    assert "Not yours." in text(client, "/audit/?outcome=refused")
    assert "limit $" not in text(client, "/audit/?outcome=refused")
    assert "Not yours." not in text(client, "/audit/?kind=budget.set")
    assert "limit $" not in text(client, "/audit/?q=mallory")
    assert "Not yours." not in text(client, "/audit/?team=vision")
    assert "Nothing like that happened." in text(
        client, "/audit/?q=nobody-of-this-name"
    )


def test_a_moment_reads_as_one_with_its_year_in_the_date(client: Client) -> None:
    happen(1)
    client.force_login(factories.person("Sam", Role.AUDITOR))
    at = Event.objects.latest("seq").at
    day, clock = f"{at:%a} {at.day} {at:%b %Y}", f"{at:%H:%M:%S} UTC"
    words = " ".join(strip_tags(text(client, "/audit/")).split())
    assert f"{day} {clock}" in words


@pytest.mark.slow
def test_pages_follow_a_cursor_without_gaps(client: Client) -> None:
    happen(120)
    client.force_login(factories.person("Sam", Role.AUDITOR))
    seen: list[int] = []
    path = "/audit/?kind=budget.set"
    while path:
        answer = client.get(path)
        seen += [
            int(row["cells"][0]["sub"].split()[1]) for row in answer.context["rows"]
        ]
        path = f"/audit/{answer.context['next']}" if answer.context["next"] else ""
        assert not path or "kind=budget.set" in path
    assert seen == list(range(120, 0, -1))


@pytest.mark.parametrize(
    "query", ["before=x", "before=-1", "before=²", "before=" + "9" * 40, "kind=nothing"]
)
def test_nonsense_in_the_address_breaks_nothing(client: Client, query: str) -> None:
    client.force_login(factories.person("Sam", Role.AUDITOR))
    assert client.get(f"/audit/?{query}").status_code == 200


def test_an_address_with_a_nul_is_refused(client: Client) -> None:
    client.force_login(factories.person("Sam", Role.AUDITOR))
    assert client.get("/audit/?team=%00").status_code == 400


def test_the_chain_is_checked_by_post_and_holds(client: Client) -> None:
    happen(3)
    client.force_login(factories.person("Sam", Role.AUDITOR))
    assert client.get("/audit/check")["Location"] == "/audit/"
    assert client.post("/audit/check")["Location"] == "/audit/"
    assert "The chain holds: 3 events, unbroken." in text(client, "/audit/")


def test_a_broken_chain_names_the_event(client: Client) -> None:
    happen(3)
    with connection.cursor() as cursor:
        cursor.execute(
            "SET session_replication_role = replica"
        )  # past the trigger, as a superuser could
        cursor.execute(
            "UPDATE audit_event SET actor_name = 'Somebody else' WHERE seq = 2"
        )
        cursor.execute("SET session_replication_role = DEFAULT")
    client.force_login(factories.person("Sam", Role.AUDITOR))
    client.post("/audit/check")
    assert "The chain is broken at event 2" in text(client, "/audit/")


def test_events_that_were_cut_off_at_the_end_are_noticed_by_page_and_api(
    client: Client,
) -> None:
    happen(5)
    with connection.cursor() as cursor:
        cursor.execute("SET session_replication_role = replica")
        cursor.execute("DELETE FROM audit_event WHERE seq > 3")
        cursor.execute("SET session_replication_role = DEFAULT")
    auditor = factories.person("Sam", Role.AUDITOR)
    client.force_login(auditor)
    client.post("/audit/check")
    assert "Events 4 to 5, the newest that are known, are missing." in text(
        client, "/audit/"
    )
    verdict = Caller(auditor).get("events/verify/").json()
    assert (verdict["checked"], verdict["broken_at"]) == (3, 4)


def test_others_may_not_check_it(client: Client) -> None:
    client.force_login(factories.person("Ada"))
    assert client.post("/audit/check").status_code == 403
    assert Event.objects.filter(kind=Kind.REFUSED).exists()


@pytest.mark.parametrize(
    ("path", "about"),
    [
        ("/requests/{}/withdraw", "Request {}"),
        ("/api/v1/requests/{}/withdraw/", "Request {}"),
    ],
)
def test_what_was_refused_names_what_it_was_about(
    client: Client, path: str, about: str
) -> None:
    seen = scene()
    asked = factories.request(seen.ada, seen.tenancy, seen.flavor, gpus=8)
    ben = factories.person("Ben", teams=[seen.team])
    if path.startswith("/api"):
        refused = Caller(ben).post(f"requests/{asked.pk}/withdraw/")
    else:
        client.force_login(ben)
        refused = client.post(path.format(asked.pk))
    assert refused.status_code == 403
    client.force_login(factories.person("Sam", Role.AUDITOR))
    page = client.get("/audit/", {"kind": Kind.REFUSED.value})
    [cell, *_] = [row["cells"][1] for row in page.context["rows"]]
    assert cell == {
        "text": about.format(asked.pk),
        "href": f"/requests/{asked.pk}/",
    }
    assert "withdraw/" not in page.context["rows"][0]["cells"][3]["text"]


@pytest.mark.parametrize(
    "path",
    [
        "/requests/new",
        "/requests/999/withdraw",
        "/teams/new",
        "/api/v1/clusters/new/",
        "/audit/check",
        "",
        "/elsewhere/1",
        f"/requests/{'9' * 30}/",
    ],
)
def test_an_address_of_no_one_thing_is_about_nothing(path: str) -> None:
    scene()
    assert called_about(path) is None


def test_a_refused_call_is_found_by_what_it_was_about_and_by_its_team(
    client: Client,
) -> None:
    seen = scene()
    asked = factories.request(seen.ada, seen.tenancy, seen.flavor, gpus=8)
    mallory = Caller(factories.person("Mallory"))
    assert mallory.post(f"requests/{asked.pk}/withdraw/").status_code == 404
    budget = mallory.send("PUT", "teams/vision/budgets/2026-11/", {"limit_usd": "1"})
    assert budget.status_code == 404
    held = factories.allocation(seen.ada, seen.tenancy, seen.flavor, gpus=1)
    assert mallory.post(f"allocations/{held.pk}/give-back/").status_code == 404
    auditor = factories.person("Sam", Role.AUDITOR)
    client.force_login(auditor)

    def found(**asked_for: str) -> list[str]:
        page = client.get("/audit/", {"outcome": "refused", **asked_for})
        return [row["cells"][1]["text"] for row in page.context["rows"]]

    assert found(about=f"request {asked.pk}") == [f"Request {asked.pk}"]
    assert found(team="vision") == [
        "What a team holds",
        "Team",
        f"Request {asked.pk}",
    ]
    events = Caller(auditor).get(
        f"events/?subject_type=request&subject_id={asked.pk}&outcome=refused"
    )
    [event] = events.json()["results"]
    assert (event["actor_name"], event["team"]) == ("Mallory", "vision")


def test_it_narrows_to_days_links_and_shows_seconds_without_internals(
    client: Client,
) -> None:
    client.force_login(factories.person("Sam", Role.AUDITOR))
    actor = Actor("person", "1", "Ada")
    details: dict[str, Any] = {
        "where": "policy/drafts/<int:pk>/",
        "reason": "Too long.",
        "fields": {"__all__": "Look again."},
    }
    with transaction.atomic():
        event = record(
            Kind.REQUEST_SUBMITTED,
            actor=actor,
            subject=("request", 7),
            what="2 × A100",
            **details,
        )
    day = f"{event.at:%Y-%m-%d}"
    page = client.get("/audit/", {"since": day, "until": day})
    cells = page.context["rows"][0]["cells"]
    assert cells[0]["href"] == f"/audit/{event.seq}/"
    assert cells[1] == {"text": "Request 7", "href": "/requests/7/"}
    assert f"{event.at:%H:%M:%S}" in cells[4]["sub"]
    assert "drafts" not in cells[3]["text"]
    assert "reason Too long. Look again." in cells[3]["text"]
    assert client.get("/audit/", {"until": "2020-01-01"}).context["rows"] == []


def test_the_last_day_of_the_calendar_leaves_everything(client: Client) -> None:
    client.force_login(factories.person("Sam", Role.AUDITOR))
    happen(1)
    last = {"until": "9999-12-31"}
    assert client.get("/audit/", last).context["rows"]
    assert client.post("/audit/export", last).status_code == 200


@pytest.mark.parametrize(
    ("to", "words"),
    [
        ("Ada", "Ada took the task"),
        ("Ben", "Ada gave the task to Ben"),
        ("", "Ada laid the task down"),
    ],
)
def test_who_takes_a_task_is_not_said_to_give_it_to_somebody(
    client: Client, to: str, words: str
) -> None:
    client.force_login(factories.person("Sam", Role.AUDITOR))
    with transaction.atomic():
        record(
            Kind.TASK_ASSIGNED,
            actor=Actor("person", "1", "Ada"),
            subject=("task", 7),
            to=to,
        )
    assert words in text(client, "/audit/")


def test_leads_and_auditors_read_how_often_calls_were_refused_that_are_no_events(
    client: Client,
) -> None:
    ada, sam = factories.person("Ada Okafor"), factories.person("Sam", Role.AUDITOR)
    now = timezone.now()
    for status in (422, 422, 429):
        count_refusal(actor=ada.as_actor(), status=status, now=now)
    count_refusal(actor=ada.as_actor(), status=405, now=now - timedelta(days=8))
    happen(60)
    client.force_login(sam)
    page = client.get("/audit/")
    rows = [row["cells"][1:] for row in page.context["counts"]["rows"]]
    assert rows == [
        [{"text": "Ada Okafor"}, "Typing errors and missing fields", 2],
        [{"text": "Ada Okafor"}, "Too many calls", 1],
    ]
    assert "that are no events: 3" in page.content.decode()
    assert "that are no events:" not in text(client, "/audit/?before=5")
    client.force_login(ada)
    assert "that are no events:" not in text(client, "/audit/")


def test_the_list_asks_as_often_for_fifty_events_as_for_five(
    client: Client, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    cluster = factories.cluster("training-eastus")
    flavor = factories.flavor(cluster, "a100")
    client.force_login(factories.person("Sam", Role.AUDITOR))
    asked = []
    for number in (3, 22):
        happen(number, subject=("cluster", cluster.pk))
        happen(number, subject=("flavor", flavor.pk))
        with django_assert_max_num_queries(12) as queries:
            text(client, "/audit/")
        asked.append(len(queries))
    assert asked[0] == asked[1]


def test_the_filter_groups_what_happened_by_what_it_is_about() -> None:
    groups = dict(kinds_by_subject()[1:])
    assert sum(map(len, groups.values())) == len(Kind)
    assert all(groups.values())
    assert ("request.approved", "approved") in groups["Requests"]
    assert not any(
        label.startswith("…") for lines in groups.values() for _, label in lines
    )
