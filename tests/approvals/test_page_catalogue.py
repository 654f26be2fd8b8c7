"""The catalogue on the page: what stands there for whom, and changing it."""

from typing import Any

import pytest
from django.test import Client

from audit.models import Event
from catalogue import actions as offering_actions
from catalogue.models import OfferingSetting
from catalogue.offerings import OFFERINGS
from catalogue.views import price_field
from tests.scene import Scene


def text(response: Any) -> str:
    """What the page says."""
    return str(response.content.decode())


@pytest.fixture
def page(client: Client, scene: Scene) -> Client:
    """Priya's browser, a platform lead's."""
    client.force_login(scene.priya)
    return client


def test_everybody_sees_what_is_offered_in_order_with_price_gate_and_what_follows(
    client: Client, scene: Scene
) -> None:
    client.force_login(scene.ada)
    shown = text(client.get("/catalogue/"))
    places = [shown.index(f'id="{key}"') for key in OFFERINGS]
    assert places == sorted(places)
    for words in (
        "The policy, when every rule holds",
        "Always people",
        "Many nodes at once: $0.16 per GiB and month",
        "A100, 80 GB: $1.00 per GPU-hour",
        "Cannot be undone",
        "Ask for a production inference endpoint",
    ):
        assert words in shown
    assert "Switch off" not in shown
    # Nine ways on are alike: none of them is the main one.
    assert "button--primary" not in shown


def test_what_is_off_is_not_there_for_people_and_is_shown_as_off_to_leads(
    page: Client, scene: Scene
) -> None:
    offering_actions.change("volume", by=scene.priya, enabled=False)
    assert "Nobody can ask for it now." in text(page.get("/catalogue/"))
    page.force_login(scene.ada)
    assert "Dataset volume" not in text(page.get("/catalogue/"))
    closed = page.get("/requests/new/volume")
    assert closed.status_code == 409
    assert "This is not offered here now." in text(closed)


@pytest.mark.slow
@pytest.mark.parametrize("key", list(OFFERINGS))
def test_every_offering_saves_as_its_form_shows_it(page: Client, key: str) -> None:
    form = page.get(f"/catalogue/{key}/").context["form"]
    shown = {name: form[name].value() for name in form.fields}
    sent = {
        name: "on" if value is True else str(value)
        for name, value in shown.items()
        if value is not None
    }
    answer = page.post(f"/catalogue/{key}/", sent)
    assert answer.status_code == 302, answer.context["form"].errors
    again = page.get(f"/catalogue/{key}/").context["form"]
    assert {name: again[name].value() for name in again.fields} == shown


def test_hours_of_an_end_may_be_none_and_not_less(page: Client) -> None:
    sent = {
        "enabled": "on",
        "gate": "self_service",
        "grace_hours": "0",
        "when_over": "stop",
        "drain_hours": "0",
    }
    assert page.post("/catalogue/notebook/", sent).status_code == 302
    assert 'min="0"' in text(page.get("/catalogue/notebook/"))
    refused = text(page.post("/catalogue/notebook/", sent | {"grace_hours": "169"}))
    assert "Write a whole number of hours from 0 to 168." in refused


def test_a_lead_switches_and_moves_with_one_button(page: Client) -> None:
    for do in ("off", "on", "up"):
        answer = page.post("/catalogue/volume/", {"do": do})
        assert (answer.status_code, answer["Location"]) == (302, "/catalogue/#volume")
    row = OfferingSetting.objects.get(key="volume")
    assert (row.enabled, row.position) == (True, 1)
    assert Event.objects.filter(kind="offering.changed").count() == 3


def test_a_lead_sets_gate_and_prices_and_adds_what_is_new(page: Client) -> None:
    shown = text(page.get("/catalogue/openai/"))
    assert "Prices in USD per million tokens" in shown
    sent = {
        "enabled": "on",
        "gate": "self_service",
        price_field("gpt-4o"): "11",
        price_field("gpt-4o-mini"): "",
        price_field("text-embedding-3-large"): "0.13",
        "new_name": "gpt-5",
        "new_price": "12.5",
    }
    assert page.post("/catalogue/openai/", sent).status_code == 302
    row = OfferingSetting.objects.get(key="openai")
    assert (row.gate, row.prices) == (
        "self_service",
        {"gpt-4o": "11", "gpt-4o-mini": None, "gpt-5": "12.5"},
    )
    assert "Not offered: it has no price." in text(page.get("/catalogue/openai/"))


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"new_name": "gpt-5"}, "Name and price go together."),
        ({"gate": "nobody"}, "cannot be chosen here."),
        ({"new_name": "GPT 5", "new_price": "1"}, "Name what the price is for."),
        ({price_field("gpt-4o"): "-1"}, "The smallest possible value is 0."),
        ({"state": "x"}, "There is no field “state” here."),
    ],
)
def test_what_does_not_fit_is_said_and_nothing_is_saved(
    page: Client, changed: dict[str, str], said: str
) -> None:
    sent = {
        "enabled": "on",
        "gate": "approval",
        price_field("gpt-4o"): "10",
        price_field("gpt-4o-mini"): "1",
        price_field("text-embedding-3-large"): "1",
    } | changed
    answer = page.post("/catalogue/openai/", sent)
    assert answer.status_code == 422
    assert said in text(answer)
    assert not OfferingSetting.objects.exists()


def test_nobody_else_changes_it(client: Client, scene: Scene) -> None:
    for person in (scene.ada, scene.elena):
        client.force_login(person)
        assert client.get("/catalogue/volume/").status_code == 403
        assert client.post("/catalogue/volume/", {"do": "off"}).status_code == 403
    client.force_login(scene.priya)
    assert client.get("/catalogue/nothing/").status_code == 404
    assert not OfferingSetting.objects.exists()
