"""The page of costs, the file for finance, and the same over the API."""

import csv
import io
import json
from collections.abc import Iterator
from datetime import date
from decimal import Decimal
from html import unescape
from typing import Any

import pytest
import time_machine
from django.test import Client

from accounts.cost_centres.models import CostCentre
from allocations.models import Allocation, Budget
from tests import factories
from tests.calling import Caller
from tests.insights.charged import at, booked, held, moved
from tests.pages import parsed
from tests.scene import DAY, NOW, Scene

PAGE, FILE = "/costs/", "/costs/file"
# Of the specification: https://focus.finops.org/focus-specification/v1-2/
MANDATORY = {
    "BilledCost",
    "BillingAccountId",
    "BillingAccountName",
    "BillingCurrency",
    "BillingPeriodEnd",
    "BillingPeriodStart",
    "ChargeCategory",
    "ChargeClass",
    "ChargeDescription",
    "ChargePeriodEnd",
    "ChargePeriodStart",
    "ContractedCost",
    "EffectiveCost",
    "InvoiceIssuerName",
    "ListCost",
    "PricingQuantity",
    "PricingUnit",
    "ProviderName",
    "PublisherName",
    "ServiceCategory",
    "ServiceName",
}


@pytest.fixture(autouse=True)
def _now() -> Iterator[None]:
    """Pages and calls are made at NOW."""
    with time_machine.travel(NOW, tick=False):
        yield


@pytest.fixture
def priya(scene: Scene, client: Client) -> Client:
    client.force_login(scene.priya)
    return client


def words(client: Client, path: str = PAGE) -> str:
    answer = client.get(path)
    assert answer.status_code == 200
    return parsed(answer.content.decode()).words


def lines_of(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


# The page


def test_the_month_under_way_is_told_with_its_end_and_its_limit(
    scene: Scene, priya: Client
) -> None:
    held(scene, 2, start=NOW - DAY, end=NOW + DAY)
    found = words(priya)
    assert "Costs, November 2026" in found
    assert "Cost so far $48 until Fri 20 Nov, 12:00 UTC" in found
    assert (
        "Planned for the month $96 if everything held and booked ends on its date"
        in found
    )
    assert "Vision $48 $96 < 1 % of $12,000 48 $0" in found


def test_what_is_booked_for_later_in_the_month_is_in_its_end_and_no_charge_yet(
    scene: Scene, priya: Client
) -> None:
    booked(scene, 1, start=NOW + DAY, end=NOW + 2 * DAY)
    to_end = "Planned for the month $24 if everything held and booked ends on its date"
    assert to_end in words(priya)
    of_team = words(priya, f"{PAGE}?team=vision")
    assert to_end in of_team
    assert "Charge by charge" not in of_team
    assert to_end in words(priya, "/teams/vision/budget")


def test_a_month_that_is_over_has_costs_and_no_end_to_come(
    scene: Scene, priya: Client
) -> None:
    held(scene, 1, start=at(1, month=10), end=at(3, month=10))
    found = words(priya, f"{PAGE}?month=2026-10&by=cost_centre")
    assert "Costs, October 2026" in found
    assert f"{scene.team.cost_centre} 1 team $48 48 $0" in found
    assert "Planned" not in found


def test_a_team_is_told_charge_by_charge_with_its_requests(
    scene: Scene, priya: Client
) -> None:
    row = held(scene, 1, start=NOW - DAY, end=NOW + DAY)
    answer = priya.get(f"{PAGE}?team=vision&by=person")
    html = answer.content.decode()
    assert "Costs of <bdi>Vision</bdi>, November 2026" in html
    assert "Ada Okafor $24 $48" in parsed(html).words
    assert f'href="/requests/{row.hold.request_id}/"' in html


@pytest.mark.slow
def test_what_is_set_aside_for_later_months_stands_below_this_one(
    scene: Scene, client: Client
) -> None:
    factories.request(scene.ada, scene.tenancy, scene.flavor, gpus=1, days=30, now=NOW)
    other = factories.team("Speech")
    Budget.objects.create(
        team=other, month=date(2026, 12, 1), limit_usd=900, held_usd=90
    )
    client.force_login(scene.priya)
    found = words(client)
    assert "Set aside for months to come" in found
    held_for = Budget.objects.get(team=scene.team, month=date(2026, 12, 1)).held_usd
    assert f"Vision ${held_for:,.0f} of $12,000" in found
    assert "Speech $90 of $900 Vision" in found
    assert f"All of them ${held_for + 90:,.0f}" in found
    assert "All of them" not in words(client, f"{PAGE}?team=vision")
    assert "months to come" not in words(client, f"{PAGE}?month=2026-10")
    client.force_login(scene.ada)
    assert "Speech $90" not in words(client)
    CostCentre.objects.filter(code__iexact=other.cost_centre).update(owner=scene.ada)
    assert "Speech $90" in words(client)
    # Its budget is its members' to see.
    assert "/teams/speech/budget" not in client.get(PAGE).content.decode()


def test_a_month_that_has_not_begun_leads_to_what_is_known_of_it(
    priya: Client,
) -> None:
    answer = priya.get(f"{PAGE}?month=2026-12")
    assert (answer.status_code, answer["Location"]) == (302, "/costs/#ahead")
    of_team = priya.get(f"{PAGE}?month=2026-12&team=vision")
    assert of_team["Location"] == "/costs/?team=vision#ahead"
    assert priya.get(f"{FILE}?month=2026-12").status_code == 404


def test_a_month_of_nothing_says_so(priya: Client) -> None:
    assert "Nothing is charged in November 2026 yet" in words(priya)
    assert "Nothing was charged in March 2026" in words(priya, f"{PAGE}?month=2026-03")


def test_a_team_of_nothing_says_so_and_one_that_is_not_seen_is_not_found(
    priya: Client, scene: Scene, client: Client
) -> None:
    page, file = f"{PAGE}?team=vision", f"{FILE}?team=vision"
    assert "Nothing is charged in November 2026 yet" in words(priya, page)
    assert lines_of(priya.get(file).content.decode()) == []
    for nothing in (f"{PAGE}?team=nobody", f"{FILE}?team=nobody"):
        assert priya.get(nothing).status_code == 404
    client.force_login(scene.mallory)
    for address in (page, file):
        assert client.get(address).status_code == 404


@pytest.mark.parametrize("query", ["month=2026-13", "month=x", "by=moon"])
@pytest.mark.parametrize("page", [PAGE, FILE])
def test_what_is_no_month_to_tell_of_is_not_found(
    priya: Client, page: str, query: str
) -> None:
    assert priya.get(f"{page}?{query}").status_code == 404


def test_people_see_their_own_teams_alone(scene: Scene, client: Client) -> None:
    held(scene, 1, start=NOW - DAY, end=NOW)
    client.force_login(scene.mallory)
    assert "Vision" not in words(client)
    assert lines_of(client.get(FILE).content.decode()) == []
    client.force_login(scene.ada)
    assert "Vision $24" in words(client)


def test_who_answers_for_a_cost_centre_finds_its_costs(
    scene: Scene, client: Client
) -> None:
    held(scene, 1, start=NOW - DAY, end=NOW)
    CostCentre.objects.filter(code=scene.team.cost_centre).update(owner=scene.mallory)
    client.force_login(scene.mallory)
    assert "Vision $24" in words(client)
    assert "/costs/?by=cost_centre" in client.get("/cost-centres/").content.decode()


@pytest.mark.slow
def test_who_sees_a_part_of_a_teams_charges_is_told_no_share_of_its_whole_limit(
    scene: Scene, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    held(scene, 1, start=at(1), end=at(11))
    CostCentre.objects.filter(code=scene.team.cost_centre).update(owner=scene.mallory)
    client.force_login(scene.mallory)
    assert "Vision $240 $240 2 % of $12,000" in words(client)
    moved(scene, "CC-NEW", at(4), monkeypatch)
    part = "– only part of the team’s cost"
    assert f"Vision $72 $72 {part}" in words(client)
    assert f"Vision $72 $72 {part}" in words(client, f"{PAGE}?team=vision")
    for all_of_it in (scene.ada, scene.priya):
        client.force_login(all_of_it)
        assert "Vision $240 $240 2 % of $12,000" in words(client)


def two_cost_centres(scene: Scene, patch: pytest.MonkeyPatch) -> None:
    """Vision moved to CC-NEW after three of ten days, where Speech has spent $24 and has booked for the next month."""
    held(scene, 1, start=at(1), end=at(11))
    speech = factories.team("Speech")
    type(speech).objects.filter(pk=speech.pk).update(cost_centre="CC-NEW")
    row = held(scene, 1, start=at(1), end=at(2))
    Allocation.objects.filter(pk=row.pk).update(team=speech)
    moved(scene, "CC-NEW", at(4), patch)
    Budget.objects.create(
        team=speech, month=date(2026, 12, 1), limit_usd=900, held_usd=90
    )


def test_a_cost_centre_leads_to_its_teams_and_stays_chosen_until_it_is_taken_off(
    scene: Scene, priya: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = scene.team.cost_centre
    two_cost_centres(scene, monkeypatch)
    page = priya.get(f"{PAGE}?month=2026-11&by=cost_centre").content.decode()
    narrowed = "month=2026-11&amp;by=team&amp;cost_centre=CC-NEW"
    assert f'href="?{narrowed}">CC-NEW</a>' in page
    page = priya.get(f"{PAGE}?{unescape(narrowed)}").content.decode()
    found = parsed(page).words
    assert "Costs, November 2026, on CC-NEW" in found
    assert "Cost so far $192" in found
    assert "Vision $168 $168 – only part of the team’s cost" in found
    assert "Speech $24 $24" in found
    assert "Speech $90 of $900" in found
    assert '<option value="CC-NEW" selected>' in page
    assert '<option value="">All cost centres</option>' in page
    assert "month=2026-11&amp;by=kind&amp;team=vision&amp;cost_centre=CC-NEW" in page
    on_old = priya.get(f"{PAGE}?cost_centre={old.lower()}")
    [row] = on_old.context["rows"]
    assert (row["cells"][0]["text"], row["cells"][1]) == ("Vision", "$72")
    assert f'<option value="{old}" selected>' in on_old.content.decode()


def test_the_file_and_the_api_are_of_one_cost_centre_too(
    scene: Scene, priya: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    two_cost_centres(scene, monkeypatch)
    query = "?month=2026-11&cost_centre=CC-NEW"
    page = priya.get(f"{PAGE}{query}").content.decode()
    assert f'href="{FILE}{query.replace("&", "&amp;")}"' in page
    of_file = lines_of(priya.get(f"{FILE}{query}").content.decode())
    assert [line["BilledCost"] for line in of_file] == ["168.00", "24.00"]
    assert lines_of(ask(scene, f"focus/{query}").content.decode()) == of_file
    answer = ask(scene, query).json()
    assert answer["total"]["spent_usd"] == "192.00"


@pytest.mark.slow
def test_a_cost_centre_of_nothing_says_so_and_one_that_is_not_seen_is_not_found(
    scene: Scene, client: Client
) -> None:
    theirs = f"cost_centre={scene.team.cost_centre}"
    for user in (scene.priya, scene.ada):
        client.force_login(user)
        assert "Nothing is charged in" in words(client, f"{PAGE}?{theirs}")
        assert lines_of(client.get(f"{FILE}?{theirs}").content.decode()) == []
        assert client.get(f"{PAGE}?cost_centre=CC-NONE").status_code == 404
        assert client.get(f"{FILE}?cost_centre=CC-NONE").status_code == 404
    client.force_login(scene.mallory)
    assert client.get(f"{PAGE}?{theirs}").status_code == 404
    for strange in (theirs, "cost_centre=CC-NONE"):
        answer = ask(scene, f"?{strange}", by=scene.mallory)
        assert (answer.status_code, answer.json()["code"]) == (
            422,
            "no_such_cost_centre",
        )
    CostCentre.objects.filter(code=scene.team.cost_centre).update(owner=scene.mallory)
    assert "Nothing is charged in" in words(client, f"{PAGE}?{theirs}")


# The file


def test_the_file_is_one_of_focus(scene: Scene, priya: Client) -> None:
    row = held(scene, 2, start=NOW - DAY, end=NOW + DAY)
    answer = priya.get(FILE)
    assert answer["Content-Type"] == "text/csv; charset=utf-8"
    assert answer["Content-Disposition"] == 'attachment; filename="costs-2026-11.csv"'
    (line,) = lines_of(answer.content.decode())
    assert line.keys() >= MANDATORY
    assert all(name[0].isupper() or name.startswith("x_") for name in line)
    expected = {
        "BilledCost": "48.00",
        "BillingPeriodStart": "2026-11-01T00:00:00Z",
        "BillingPeriodEnd": "2026-12-01T00:00:00Z",
        "ChargePeriodStart": "2026-11-19T12:00:00Z",
        "ChargePeriodEnd": "2026-11-20T12:00:00Z",
        "PricingQuantity": "48.000000",
        "PricingUnit": "GPU-Hours",
        "ListUnitPrice": "1",
        "ResourceId": f"allocation-{row.pk}",
        "ServiceCategory": "Compute",
        "SubAccountId": "vision",
        "SkuId": scene.flavor.key,
        "x_CostCentre": scene.team.cost_centre,
        "x_RequestId": str(row.hold.request_id),
    }
    assert {name: line[name] for name in expected} == expected
    assert json.loads(line["Tags"])["namespace"] == scene.tenancy.namespace


@pytest.mark.slow
def test_the_file_adds_up_to_the_page_and_each_line_to_its_price(
    scene: Scene, priya: Client
) -> None:
    for day in range(1, 6):
        held(scene, 1, start=at(day, 3), end=at(day + 4, day))
    held(scene, 1, start=NOW + DAY, end=NOW + 2 * DAY)
    found = lines_of(priya.get(FILE).content.decode())
    spent = sum(Decimal(line["BilledCost"]) for line in found)
    assert len(found) == 5
    assert f"Cost so far ${spent:,.0f}" in words(priya)
    for line in found:
        product = Decimal(line["ListUnitPrice"]) * Decimal(line["PricingQuantity"])
        assert abs(product - Decimal(line["ListCost"])) <= Decimal("0.01")


def test_a_name_that_a_spreadsheet_would_run_is_text_in_the_file(
    scene: Scene, priya: Client
) -> None:
    held(scene, 1, start=NOW - DAY, end=NOW)
    type(scene.team).objects.filter(pk=scene.team.pk).update(name="=1+1")
    (line,) = lines_of(priya.get(FILE).content.decode())
    assert line["SubAccountName"] == "'=1+1"


# The API


def ask(scene: Scene, query: str = "", **who: Any) -> Any:
    return Caller(who.get("by", scene.priya), "read").get(f"costs/{query}")


def test_the_api_tells_the_same(scene: Scene) -> None:
    held(scene, 2, start=NOW - DAY, end=NOW + DAY)
    answer = ask(scene).json()
    cost = {
        "spent_usd": "48.00",
        "spent_gpu_hours": "48.00",
        "to_end_usd": "96.00",
        "to_end_gpu_hours": "96.00",
        "idle_usd": "0.00",
    }
    assert answer == {
        "month": "2026-11",
        "until": "2026-11-20T12:00:00Z",
        "is_over": False,
        "by": "team",
        "total": cost,
        "results": [{**cost, "key": "vision", "name": "Vision", "teams": ["vision"]}],
    }


@pytest.mark.parametrize(
    ("query", "status", "code", "name"),
    [
        ("?month=2026-12", 422, "month_not_begun", "month"),
        ("?month=2026-1", 422, "no_such_month", "month"),
        ("?team=nobody", 422, "no_such_team", "team"),
        ("?by=moon", 400, "invalid_choice", "by"),
        ("?colour=red", 400, "unknown_field", "colour"),
    ],
)
def test_what_cannot_be_told_is_refused_in_words(
    scene: Scene, query: str, status: int, code: str, name: str
) -> None:
    answer = ask(scene, query)
    (error,) = answer.json()["errors"]
    assert (answer.status_code, error["code"], error["pointer"]) == (
        status,
        code,
        f"/{name}",
    )


def test_a_team_that_one_may_not_see_is_like_one_that_is_not_there(
    scene: Scene,
) -> None:
    held(scene, 1, start=NOW - DAY, end=NOW)
    strange = ask(scene, "?team=vision", by=scene.mallory).json()
    missing = ask(scene, "?team=nobody", by=scene.mallory).json()
    assert (strange["code"], strange["detail"]) == (missing["code"], missing["detail"])


def test_finance_fetches_the_file_by_a_token(scene: Scene) -> None:
    held(scene, 2, start=NOW - DAY, end=NOW + DAY)
    answer = ask(scene, "focus/?month=2026-11&team=vision")
    (line,) = lines_of(answer.content.decode())
    assert line["BilledCost"] == "48.00"
    other = factories.person("Olu Auditor")
    assert lines_of(ask(scene, "focus/", by=other).content.decode()) == []


def test_a_cost_centre_that_a_team_had_is_known_in_every_month(
    client: Client, scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = scene.team.cost_centre
    held(scene, 1, start=at(10, month=10), end=at(18))
    moved(scene, "CC-7000", at(31, 12, month=10), monkeypatch)
    for person, status in ((scene.ada, 200), (scene.mallory, 404)):
        client.force_login(person)
        for month in ("2026-10", "2026-11"):
            path = f"/costs/?month={month}&cost_centre={old}"
            assert client.get(path).status_code == status, path
