"""Numbers and times that are none, in every field of every offering that is counted, through API and page."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from approvals.models import Request
from catalogue.offerings import OFFERINGS
from catalogue.views import price_field
from tests import factories
from tests.approvals.shop import SPECS
from tests.attacks.browsing import as_, state_of_everything, text_of
from tests.calling import Caller
from tests.scene import REASON, Scene

NUMBERS = {
    key: [
        name
        for name, field in offering.spec.model_fields.items()
        if field.annotation is int
    ]
    for key, offering in OFFERINGS.items()
}
FIELDS = [(key, name) for key, names in NUMBERS.items() for name in names]
# As they stand in the JSON: a parser that reads NaN or 1e309 as a number must not get them past the field.
RAW = [
    "0",
    "-1",
    "1.5",
    "1.0",
    "1e309",
    "-1e309",
    str(2**63),
    str(2**64),
    '"8"',
    '"8 "',
    '"８"',
    "true",
    "false",
    "null",
    "[1]",
    "{}",
    '{"$gt": 0}',
    '""',
]
NO_JSON = ["NaN", "Infinity", "-Infinity", "0x10", "01", "+1", "1_0", "9" * 5000]
TYPED = [
    "0",
    "-1",
    "1.5",
    "NaN",
    "inf",
    "1e309",
    "1e1",
    "8 x",
    "８",
    "+1",
    "0x10",
    "1_0",
    str(2**63),
    "",
    "true",
]


def body(key: str, field: str, raw: str) -> str:
    """An ask in JSON with one value written as it is."""
    rest = {name: value for name, value in SPECS[key].items() if name != field}
    said = ", ".join(f'"{name}": {quoted(value)}' for name, value in rest.items())
    until = (timezone.now() + timedelta(days=2)).isoformat()
    return (
        f'{{"team": "vision", "offering": "{key}", "until": "{until}", "reason": "{REASON}", '
        f'"spec": {{{said}{", " if said else ""}"{field}": {raw}}}}}'
    )


def quoted(value: object) -> str:
    return str(value) if isinstance(value, int) else f'"{value}"'


@pytest.fixture
def ada(scene: Scene) -> Iterator[Caller]:
    """A member whose team can have everything, and whose calls leave nothing but events of refusals."""
    factories.cluster("dev")
    caller = Caller(scene.ada)
    before = state_of_everything()
    yield caller
    assert state_of_everything() == before


def test_there_is_a_number_in_every_offering_but_the_namespace() -> None:
    assert [key for key, names in NUMBERS.items() if not names] == ["namespace"]
    assert all(
        OFFERINGS[key].spec.counted in names for key, names in NUMBERS.items() if names
    )


@pytest.mark.slow
@pytest.mark.parametrize(("key", "field"), FIELDS)
def test_what_is_no_number_is_refused_at_its_field_by_the_api(
    ada: Caller, key: str, field: str
) -> None:
    for raw in RAW:
        answer = ada.post("requests/", body(key, field, raw))
        assert answer.status_code == 422, (raw, answer.content)
        assert {
            error["pointer"].rpartition("/")[2] for error in answer.json()["errors"]
        } == {field}, raw
    most = OFFERINGS[key].spec.model_json_schema()["properties"][field]["maximum"]
    assert ada.post("requests/", body(key, field, str(most + 1))).status_code == 422


def test_what_is_no_json_number_is_refused_as_no_json(ada: Caller) -> None:
    for raw in NO_JSON:
        answer = ada.post("requests/", body("volume", "gib", raw))
        assert (answer.status_code, answer.json()["code"]) == (400, "parse_error"), raw


def form(key: str, **changed: str) -> dict[str, str]:
    """An offering's form, filled."""
    until = (timezone.now() + timedelta(days=2)).strftime("%Y-%m-%dT%H:%M")
    usual = {"team": "vision", "until": until, "reason": REASON} | {
        n: str(v) for n, v in SPECS[key].items()
    }
    return usual | changed


@pytest.mark.slow
@pytest.mark.parametrize("key", OFFERINGS)
def test_what_is_no_number_is_refused_by_the_page(scene: Scene, key: str) -> None:
    factories.cluster("dev")
    browser = as_(scene.ada)
    before = state_of_everything()
    address = "/requests/new" if key == "gpus" else f"/requests/new/{key}"
    for field in NUMBERS[key]:
        for value in TYPED:
            answer = browser.post(address, form(key, **{field: value}))
            assert answer.status_code == 422, (field, value)
            assert field in answer.context["form"].errors, (field, value)
    for until in (
        "9999-12-31T23:59",
        "2020-01-01T00:00",
        "2030-13-01T00:00",
        "２０３０-01-01T00:00",
        "tomorrow",
        "",
    ):
        assert browser.post(address, form(key, until=until)).status_code == 422, until
    assert browser.post(address, form(key, state="approved")).status_code == 422
    assert state_of_everything() == before


def test_the_limits_are_where_they_are_said_to_be(scene: Scene) -> None:
    ada, reason = Caller(scene.ada), {"reason": REASON}
    usual = {
        "team": "vision",
        "until": (timezone.now() + timedelta(hours=10)).isoformat(),
    } | reason
    spec = {"flavor": "training/a100", "purpose": "training"}
    at = ada.post("requests/", usual | {"spec": spec | {"gpus": 2}})
    assert (at.status_code, at.json()["state"]) == (201, "approved")
    above = ada.post("requests/", usual | {"spec": spec | {"gpus": 3}})
    assert (above.status_code, above.json()["state"]) == (201, "waiting")


UNTIL = [
    "2020-01-01T00:00:00Z",
    "2030-01-01T00:00:00",
    "9999-12-31T23:59:59Z",
    "2027-01-01",
    "20270101T000000Z",
    "2027-01-01T24:00:00Z",
    "2027-02-30T00:00:00Z",
    "2027-01-01T00:00:60Z",
    "2027-01-01T00:00:00+99:00",
    "２０２７-01-01T00:00:00Z",
    "2027-01-01T00:00:00 Europe/Berlin",
    "1767225600",
    " ",
]


def test_times_without_sense_are_refused_when_asking_changing_and_previewing(
    ada: Caller,
) -> None:
    spec = dict(SPECS["gpus"])
    for until in UNTIL:
        said = {"team": "vision", "spec": spec, "until": until, "reason": REASON}
        for path in ("requests/", "requests/preview/"):
            answer = ada.post(path, said)
            assert answer.status_code == 422, (path, until)
            assert answer.json()["errors"][0]["pointer"] == "/until"


def test_an_hour_that_clocks_skip_is_one_moment_because_zones_are_offsets(
    scene: Scene,
) -> None:
    # A last Sunday of March has no 02:30 in Berlin; with an offset it is a moment like any other.
    ada, at = Caller(scene.ada), timezone.now() + timedelta(days=2)
    said = {"team": "vision", "spec": dict(SPECS["gpus"]), "reason": REASON}
    seen = {
        ada.post("requests/preview/", said | {"until": until}, key=None).json()[
            "answer"
        ]["sentence"]
        for until in (
            f"{at:%Y-%m-%d}T02:30:00+01:00",
            f"{at:%Y-%m-%d}T01:30:00Z",
            f"{at:%Y-%m-%d}t03:30:00+02:00",
        )
    }
    assert len(seen) == 1


def test_a_wait_ends_after_it_starts(scene: Scene) -> None:
    now = timezone.now()
    caller = Caller(scene.priya)
    wrong = [
        (now + timedelta(days=2), now + timedelta(days=1)),
        (now - timedelta(days=2), now - timedelta(days=1)),
    ]
    for starts_at, until in wrong:
        said: dict[str, Any] = {
            "to": str(scene.marcus.oid),
            "starts_at": starts_at.isoformat(),
            "until": until.isoformat(),
        }
        assert caller.post("delegations/", said).status_code == 422


@pytest.mark.slow
@pytest.mark.parametrize(
    "value", ["1.5", "-1", "1e3", "NaN", "８", "99999999999999", "true", " 1 2"]
)
def test_prices_limits_and_money_take_no_number_that_is_none(
    scene: Scene, client: Client, value: str
) -> None:
    client.force_login(scene.priya)
    before = state_of_everything()
    month = f"{timezone.now():%Y-%m}-01"
    if value != "1.5":
        for field in ("limit_usd", "gpu_hours_limit"):
            sent = {"month": month, "limit_usd": "100"} | {field: value}
            assert client.post("/teams/vision/budget", sent).status_code == 422, field
        assert (
            client.post(
                "/catalogue/openai/",
                {"gate": "approval", "enabled": "on", price_field("gpt-4o"): value},
            ).status_code
            == 422
        )
    if value != "99999999999999":
        sent = {"month": month, "limit_usd": "100", "soft_percent": value}
        assert client.post("/teams/vision/budget", sent).status_code == 422
    caller = Caller(scene.priya)
    amounts: list[Any] = [value, None, 5, 1.5, True, [], {}]
    for amount in amounts:
        if amount != "1.5":
            answer = caller.put(
                f"teams/vision/budgets/{month[:7]}/", {"limit_usd": amount}
            )
            assert answer.status_code == 422, (amount, answer.content)
            answer = caller.patch("offerings/openai/", {"prices": {"gpt-4o": amount}})
            assert answer.status_code == 422 or amount is None, (amount, answer.content)
    assert state_of_everything() == before


def test_no_more_gpus_are_taken_than_there_are(scene: Scene) -> None:
    assert scene.flavor.take(24)
    assert not scene.flavor.take(1)
    assert scene.allocated() == 24


def test_a_digit_of_another_script_asks_for_nothing(scene: Scene) -> None:
    page = as_(scene.ada).post("/requests/new/volume", form("volume", gib="８"))
    assert "Write a whole number" in text_of(page)
    assert not Request.objects.exists()
