"""Asking on the page: starting points, the answer, what is refused at the field, and sending it twice."""

import re
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from html import unescape
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from django.test import Client
from django.utils import timezone

from accounts.models import User
from accounts.roles import Role
from allocations.models import Allocation
from approvals.decisions import actions as decisions
from approvals.models import Request
from approvals.request_form.quick_ends import end_of_day_words
from approvals.requests.actions import submit
from approvals.requests.wanted import resolve
from audit.models import Event, RefusalCount
from fleet.models import Flavor
from provisioning.models import Tenancy
from tests import factories
from ui.amounts import moment, usd

pytestmark = pytest.mark.django_db
NEW, PREVIEW = "/requests/new", "/requests/preview/gpus"


@pytest.fixture
def place() -> Tenancy:
    """Vision on training-eastus."""
    return factories.tenancy(
        factories.team("Vision"), factories.cluster("training-eastus")
    )


@pytest.fixture
def a100(place: Tenancy) -> Flavor:
    """24 A100 there."""
    return factories.flavor(place.cluster, "a100")


@pytest.fixture
def ada(place: Tenancy, a100: Flavor) -> User:
    """A member of Vision."""
    return factories.person("Ada Okafor", teams=[place.team])


@pytest.fixture
def page(client: Client, ada: User) -> Client:
    """Ada's browser."""
    client.force_login(ada)
    return client


def values(**changes: Any) -> dict[str, Any]:
    """The form as Ada fills it in."""
    until = timezone.now() + timedelta(days=3)
    usual = {
        "team": "vision",
        "flavor": "training-eastus/a100",
        "gpus": "2",
        "until": until.strftime("%Y-%m-%dT%H:%M"),
        "purpose": "training",
        "reason": "",
        "token": "one",
    }
    return {key: value for key, value in (usual | changes).items() if value is not None}


def text(response: Any) -> str:
    """What the page says."""
    return str(response.content.decode())


def test_it_starts_from_what_exists_with_prices(page: Client) -> None:
    shown = text(page.get(NEW))
    tonight = f"1 × A100 · {end_of_day_words(timezone.now())}"
    for title in (tonight, "2 × A100 · 1 week", "8 × A100 · 3 days"):
        assert title in shown
    assert "Automatic. Yours in about 5 seconds." in shown
    assert "Ask for 1 × A100" in shown


def test_it_offers_what_was_asked_for_last(
    page: Client, ada: User, place: Tenancy, a100: Flavor
) -> None:
    factories.request(ada, place, a100, gpus=2, days=3)
    response = page.get(NEW)
    assert "as last time" in text(response)
    assert "Ask for 2 × A100" in text(response)


def test_what_was_asked_for_last_stands_there_once(
    page: Client, ada: User, place: Tenancy, a100: Flavor
) -> None:
    factories.request(ada, place, a100, gpus=2, days=7)
    shown = text(page.get(NEW))
    assert "as last time" in shown
    assert "2 × A100 · 7 days" in shown
    assert "2 × A100 · 1 week" not in shown


def test_an_ask_of_minutes_is_offered_again_for_a_day(
    page: Client, ada: User, place: Tenancy, a100: Flavor
) -> None:
    factories.request(ada, place, a100, gpus=2, days=3 / 1440)
    assert "2 × A100 · 1 day" in text(page.get(NEW))


def test_an_ask_until_some_hour_is_offered_again_for_whole_days(
    page: Client, ada: User, place: Tenancy, a100: Flavor
) -> None:
    factories.request(ada, place, a100, gpus=2, days=2.98)
    assert "2 × A100 · 3 days" in text(page.get(NEW))


def test_a_booking_is_offered_again_for_as_long_as_it_was_had(
    page: Client, ada: User, place: Tenancy, a100: Flavor
) -> None:
    now = timezone.now()
    booked = resolve(
        "gpus",
        {"flavor": a100.key, "gpus": 2, "purpose": "training"},
        team=place.team,
        starts=now + timedelta(days=7),
        until=now + timedelta(days=9),
        reason="",
    )
    submit(booked, by=ada, now=now)
    assert "2 × A100 · 2 days" in text(page.get(NEW))


def test_the_form_does_not_start_with_an_ask_that_still_waits(
    page: Client, ada: User, place: Tenancy, a100: Flavor
) -> None:
    asked = factories.request(ada, place, a100, gpus=5)
    shown = text(page.get(NEW))
    assert "You asked for 5 × A100 just now, and it waits." in shown
    assert f'href="/requests/{asked.pk}/"' in shown
    assert "you asked for this just now, it waits" in shown
    assert "Ask for 5 × A100" not in shown


def hidden(html: str, name: str) -> str:
    """What the answer sends along with the form."""
    found = re.search(rf'name="{name}" value="(\w+)"', html)
    assert found is not None, name
    return found[1]


def test_whoever_goes_back_to_the_form_sees_that_it_was_sent(
    page: Client, ada: User, place: Tenancy, a100: Flavor
) -> None:
    page.post(NEW, values())
    asked = Request.objects.get()
    said = "You asked for the same just now, and it was granted. This asks for it once more."
    shown = text(page.post(PREVIEW, values()))
    assert said in shown
    assert f'href="/requests/{asked.pk}/"' in shown
    assert "for the same" not in text(page.post(PREVIEW, values(gpus="1")))
    Request.objects.update(created_at=timezone.now() - timedelta(minutes=31))
    assert "for the same" not in text(page.post(PREVIEW, values()))


@pytest.mark.slow
def test_a_second_tab_is_told_before_it_sends_the_same_once_more(
    page: Client, ada: User, place: Tenancy, a100: Flavor
) -> None:
    # One form: it ends at the same minute, however late it is sent.
    form = values()
    shown = text(page.post(PREVIEW, form))
    seen = {name: hidden(shown, name) for name in ("answered", "same")}
    assert page.post(NEW, {**form, **seen}).status_code == 302
    second = page.post(NEW, {**form, **seen, "token": "two"})
    assert second.status_code == 422
    assert "You sent the same from elsewhere after this answer." in text(second)
    assert "This asks for it once more." in text(second)
    assert Request.objects.count() == 1
    told = {name: hidden(text(second), name) for name in ("answered", "same")}
    assert page.post(NEW, {**form, **told, "token": "two"}).status_code == 302
    assert Request.objects.count() == 2


@pytest.mark.slow
def test_what_was_sent_long_ago_holds_up_no_form_that_told_of_it(
    page: Client, ada: User, place: Tenancy, a100: Flavor
) -> None:
    # Its end is told in minutes, of which one may pass meanwhile.
    asked = values()
    page.post(NEW, asked)
    shown = text(page.post(PREVIEW, asked))
    told = {name: hidden(shown, name) for name in ("answered", "same")}
    assert told["same"] == str(Request.objects.get().pk)
    Request.objects.update(created_at=timezone.now() - timedelta(minutes=31))
    again = page.post(NEW, {**asked, **told, "token": "two"})
    assert again.status_code == 302


def test_what_ends_another_day_is_not_called_the_same(
    page: Client, ada: User, place: Tenancy, a100: Flavor
) -> None:
    page.post(NEW, values())
    until = Request.objects.get().until
    later = (until + timedelta(days=3)).strftime("%Y-%m-%dT%H:%M")
    shown = text(page.post(PREVIEW, values(until=later)))
    assert "for the same" not in shown
    assert f"You asked for as much until {moment(until, timezone.now())}" in shown


def test_the_link_to_book_what_is_taken_leads_to_where_it_is_free(
    page: Client, ada: User, place: Tenancy, a100: Flavor
) -> None:
    """A form says minutes: at the beginning of the minute in which others end they have not ended."""
    now = timezone.now().replace(second=14, microsecond=5) - timedelta(minutes=2)
    factories.request(ada, place, a100, gpus=2, days=1, now=now)
    end = Allocation.objects.get().until
    begins = (timezone.now() + timedelta(hours=1)).strftime("%Y-%m-%dT%H:%M")
    asked = values(gpus="24", reason="All.", starts_at=begins)
    shown = text(page.post(PREVIEW, asked))
    [link] = re.findall(r'href="([^"]+)">Book it from then', shown)
    [starts] = parse_qs(urlsplit(unescape(link)).query)["starts_at"]
    free = datetime.fromisoformat(starts).replace(tzinfo=UTC)
    assert timedelta(0) <= free - end < timedelta(minutes=1)


def test_it_says_so_to_whoever_is_in_no_team(client: Client) -> None:
    client.force_login(factories.person("Noor Haddad"))
    shown = text(client.get(NEW))
    assert "You are in no team yet" in shown
    assert 'href="/teams/new"' in shown


def test_who_only_looks_is_not_offered_to_bring_a_team_on_board(client: Client) -> None:
    client.force_login(factories.person("Rita Blum", Role.AUDITOR))
    assert 'href="/teams/new"' not in text(client.get(NEW))


@pytest.fixture
def audio(ada: User, place: Tenancy) -> Tenancy:
    """Ada's other team, whose name is the first."""
    there = factories.tenancy(factories.team("Audio"), place.cluster)
    factories.join(there.team, ada)
    return there


@pytest.mark.slow
@pytest.mark.parametrize("waits", [False, True])
def test_the_form_starts_with_the_team_of_the_last_ask(
    page: Client, ada: User, audio: Tenancy, place: Tenancy, a100: Flavor, waits: bool
) -> None:
    assert page.get(NEW).context["form"]["team"].value() == "audio"
    factories.request(ada, place, a100, gpus=8 if waits else 1)
    response = page.get(NEW)
    assert response.context["form"]["team"].value() == "vision"
    assert {point["values"]["team"] for point in response.context["points"]} == {
        "vision"
    }
    assert page.get(NEW, {"team": "audio"}).context["form"]["team"].value() == "audio"


def test_other_offerings_start_with_the_team_of_the_last_ask(
    page: Client, ada: User, audio: Tenancy, place: Tenancy, a100: Flavor
) -> None:
    factories.request(ada, place, a100)
    form = page.get("/requests/new/volume").context["form"]
    assert form["team"].value() == "vision"


def test_a_link_fills_the_form(page: Client) -> None:
    shown = text(page.get(NEW, {"gpus": "5", "purpose": "notebook"}))
    assert 'value="5"' in shown
    assert "Platform leads decide." in shown
    assert "Automatic for 2." in shown


def test_the_price_times_the_time_is_the_sum(page: Client) -> None:
    until = timezone.now() + timedelta(hours=5, minutes=31)
    sent = values(gpus="2", until=until.strftime("%Y-%m-%dT%H:%M"))
    answer = page.post(PREVIEW, sent).context["answer"]
    told = re.search(r"^2 × \$3.67 per GPU-hour × 5 h (\d+) min", answer["formula"])
    assert told is not None
    assert answer["total"] == usd(2 * Decimal("3.67") * (5 + Decimal(told[1]) / 60))


def test_a_small_ask_is_granted_at_once(page: Client, ada: User) -> None:
    response = page.post(NEW, values())
    asked = Request.objects.get()
    assert (response.status_code, response["Location"]) == (
        302,
        f"/requests/{asked.pk}/",
    )
    assert (asked.state, asked.requester, asked.gpus) == ("approved", ada, 2)


def test_sending_it_twice_asks_once(page: Client) -> None:
    sent = values()
    first, second = page.post(NEW, sent), page.post(NEW, sent)
    assert first["Location"] == second["Location"]
    assert Request.objects.count() == 1


def test_the_same_form_with_other_values_is_refused_and_can_be_sent_again(
    page: Client,
) -> None:
    page.post(NEW, values())
    response = page.post(NEW, values(gpus="1"))
    assert response.status_code == 409
    assert "This form was sent already" in text(response)
    assert 'name="token" value="one"' not in text(response)
    assert Request.objects.count() == 1


@pytest.mark.slow
@pytest.mark.parametrize(
    "gpus", ["0", "-1", "1.5", "NaN", str(10**20), "8 ", "８", "", "1e1", "+2", "two"]
)
def test_it_refuses_a_number_of_gpus_that_is_none(page: Client, gpus: str) -> None:
    response = page.post(NEW, values(gpus=gpus))
    assert response.status_code == 422
    assert 'href="#id_gpus"' in text(response)
    assert f'value="{gpus}"' in text(response) or not gpus
    assert not Request.objects.exists()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("until", "said"),
    [
        ("2020-01-01T00:00", "The end must lie in the future."),
        ("9999-12-31T23:59", "The end lies too far ahead"),
        ("2026-13-01T00:00", "Write a day and a time"),
        ("2026-11-28T18:00Z", "Write a day and a time"),
        ("tomorrow", "Write a day and a time"),
        ("", "Nothing stands here yet. Fill it in."),
    ],
)
def test_it_refuses_an_end_without_sense(page: Client, until: str, said: str) -> None:
    response = page.post(NEW, values(until=until))
    assert response.status_code == 422
    assert said in text(response)
    assert 'href="#id_until"' in text(response)
    assert not Request.objects.exists()


def test_anothers_team_looks_like_one_that_does_not_exist(page: Client) -> None:
    factories.tenancy(factories.team("Speech"), factories.cluster("other"))
    answers = [page.post(NEW, values(team=team)) for team in ("speech", "nobody")]
    assert [answer.status_code for answer in answers] == [422, 422]
    assert all("Team: Choose one of your teams." in text(answer) for answer in answers)


def test_a_kind_of_gpu_elsewhere_looks_like_one_that_does_not_exist(
    page: Client,
) -> None:
    factories.flavor(factories.cluster("other"), "secret")
    for flavor in ("other/secret", "other/none"):
        answer = page.post(NEW, values(flavor=flavor))
        assert answer.status_code == 422
        assert "Choose a kind of GPU that is offered where the team is." in text(answer)
        assert "secret 80 GB" not in text(answer)


def test_it_refuses_fields_that_nobody_asked_for(page: Client) -> None:
    response = page.post(NEW, values(state="approved"))
    assert response.status_code == 422
    assert "There is no field “state” here." in text(response)


def test_a_reason_is_asked_for_only_when_a_person_decides(page: Client) -> None:
    assert 'name="reason"' not in text(page.post(PREVIEW, values()))
    assert 'name="reason"' in text(page.post(PREVIEW, values(gpus="3")))


def test_beside_the_reason_stands_one_that_helps_to_decide(page: Client) -> None:
    shown = text(page.post(PREVIEW, values(gpus="3")))
    assert "what if you get less?" in shown
    assert "For example: “The detector for the review on 12 December." in shown


def test_a_person_is_not_asked_without_a_reason(page: Client) -> None:
    response = page.post(NEW, values(gpus="3", reason="because"))
    assert response.status_code == 422
    assert "what it is for, in at least 10 characters." in text(response)
    assert ">because</textarea>" in text(response).replace("\n", "")
    assert RefusalCount.objects.get(status=422).count == 1


def test_what_changed_after_the_answer_is_answered_again_first(page: Client) -> None:
    response = page.post(
        NEW, values(answered="vision training-eastus/a100 1 2026-11-28T18:00")
    )
    assert response.status_code == 422
    assert "You changed it after this answer." in text(response)
    assert not Request.objects.exists()


def test_the_preview_says_what_is_stored_when_it_is_sent(page: Client) -> None:
    sent = values(gpus="4", reason="Fine-tune the detector on the new tiles.")
    shown = page.post(PREVIEW, sent).context["answer"]["verdict"]
    page.post(NEW, sent)
    stored = Request.objects.get().evaluations.get().answer
    assert shown["sentence"] == stored["sentence"]
    assert [rule["number"] for rule in shown["rules"]] == [
        rule["limit"] for rule in stored["rules"]
    ]
    assert [rule["mark"] == "ok" for rule in shown["rules"]] == [
        rule["holds"] for rule in stored["rules"]
    ]


def test_the_preview_writes_nothing_and_is_no_refusal(page: Client) -> None:
    before = Event.objects.count()
    for sent in (values(), values(gpus="9" * 5), values(gpus="x")):
        assert page.post(PREVIEW, sent).status_code == 200
    assert (Request.objects.count(), Event.objects.count()) == (0, before)


def test_without_script_the_form_is_checked_before_it_is_sent(page: Client) -> None:
    response = page.post(NEW, values(gpus="16", check="1"))
    assert response.status_code == 200
    assert "Platform leads, then engineering leadership decide." in text(response)
    assert "Ask for 16 × A100" in text(response)
    assert not Request.objects.exists()


def test_a_quick_choice_sets_the_end(page: Client) -> None:
    response = page.post(NEW, values(quick="14"))
    until = response.context["form"].cleaned_data["until"]
    assert timedelta(days=13, hours=23) <= until - timezone.now() <= timedelta(days=14)


def test_what_is_impossible_cannot_be_sent(page: Client) -> None:
    shown = text(page.post(PREVIEW, values(gpus="25")))
    assert "Not possible as it stands" in shown
    assert "disabled" in shown
    assert (
        page.post(NEW, values(gpus="25", reason="As many as there are.")).status_code
        == 422
    )


def test_it_says_what_changes_and_what_it_costs(
    page: Client, ada: User, place: Tenancy, a100: Flavor
) -> None:
    factories.request(ada, place, a100, gpus=2, days=3)
    answer = page.post(PREVIEW, values(gpus="1")).context["answer"]
    rows = {row["label"]: (row["before"], row["after"]) for row in answer["changes"]}
    assert rows["Quota, A100"] == ("2 GPUs", "3 GPUs")
    assert rows["Cost a day"] == ("$176", "$264")
    assert answer["per_day"] == "$88"


@pytest.mark.slow
def test_the_usual_time_needs_five_samples(
    page: Client, ada: User, place: Tenancy, a100: Flavor
) -> None:
    lead = factories.person("Priya Raman", Role.PLATFORM_LEAD)
    now = timezone.now()
    for number in range(5):
        said = page.post(PREVIEW, values(gpus="3")).context["answer"]["verdict"][
            "detail"
        ]
        assert said == ""
        asked = factories.request(
            ada, place, a100, gpus=3, days=1, now=now - timedelta(days=9 - number)
        )
        at = asked.created_at + timedelta(hours=3)
        decisions.approve(asked.pk, by=lead, expected_version=1, now=at)
    said = page.post(PREVIEW, values(gpus="3")).context["answer"]["verdict"]["detail"]
    assert said == "Usually 3 h."


@pytest.mark.slow
def test_it_asks_the_database_as_often_for_many_kinds_as_for_few(
    page: Client,
    place: Tenancy,
    django_assert_max_num_queries: Any,
    ada: User,
    a100: Flavor,
) -> None:
    factories.request(ada, place, a100, gpus=1)
    with django_assert_max_num_queries(23) as few:
        page.get(NEW)
    for number in range(20):
        factories.flavor(place.cluster, f"kind-{number}")
    with django_assert_max_num_queries(23) as many:
        page.get(NEW)
    assert len(few) == len(many)
