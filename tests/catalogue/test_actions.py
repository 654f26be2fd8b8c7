"""Changing the catalogue: who may, what it does to asks, and that it is told."""

from decimal import Decimal

import pytest

from approvals.requests.actions import judge, submit
from audit.models import Event
from catalogue import actions as offering_actions
from catalogue.models import OfferingSetting
from catalogue.offerings import OFFERINGS
from policy.evaluation import Outcome
from tests.approvals.shop import wanted
from tests.scene import NOW, Scene
from web.refusals import BadInput, Conflict, NoRight


def keys() -> list[str]:
    """The offerings in their order."""
    return [row.key for row in offering_actions.settings_in_order()]


def test_nobody_but_platform_leads_changes_it(scene: Scene) -> None:
    for person in (scene.ada, scene.elena, scene.mallory):
        with pytest.raises(NoRight):
            offering_actions.change("volume", by=person, enabled=False)
    assert not OfferingSetting.objects.exists()


def test_what_is_switched_off_cannot_be_asked_for(scene: Scene) -> None:
    offering_actions.change("volume", by=scene.priya, enabled=False)
    with pytest.raises(Conflict) as refused:
        submit(wanted(scene, "volume"), by=scene.ada, now=NOW)
    assert (refused.value.code, refused.value.field) == ("offering_off", "offering")
    offering_actions.change("volume", by=scene.priya, enabled=True)
    assert submit(wanted(scene, "volume"), by=scene.ada, now=NOW).state == "approved"


def test_the_gate_decides_whether_people_always_do(scene: Scene) -> None:
    assert (
        judge(wanted(scene, "volume"), person=scene.ada, now=NOW).answer.outcome
        is Outcome.AUTOMATIC
    )
    offering_actions.change("volume", by=scene.priya, gate="approval")
    assert (
        judge(wanted(scene, "volume"), person=scene.ada, now=NOW).answer.outcome
        is Outcome.PEOPLE
    )


def test_a_price_of_this_installation_counts_before_the_catalogues(
    scene: Scene,
) -> None:
    offering_actions.change(
        "volume", by=scene.priya, prices={"ReadWriteMany": Decimal("7.30")}
    )
    assert wanted(scene, "volume").size.usd_per_hour_each == Decimal("0.01")
    assert OfferingSetting.objects.get(key="volume").prices == {"ReadWriteMany": "7.30"}
    offering_actions.change(
        "volume", by=scene.priya, prices={"ReadWriteMany": Decimal("0.16")}
    )
    assert OfferingSetting.objects.get(key="volume").prices == {}


def test_what_loses_its_price_cannot_be_asked_for_and_something_new_can(
    scene: Scene,
) -> None:
    prices = {"gpt-4o-mini": None, "gpt-5": Decimal("12.50")}
    offering_actions.change("openai", by=scene.priya, prices=prices)
    with pytest.raises(BadInput) as refused:
        wanted(scene, "openai")
    assert (refused.value.code, refused.value.field) == ("no_price", "model")
    assert wanted(scene, "openai", model="gpt-5").size.usd_per_hour_each == Decimal(
        "0.75"
    )


@pytest.mark.parametrize(
    ("key", "prices"),
    [
        ("gpus", {"a100": Decimal(1)}),
        ("volume", {"ReadNever": Decimal(1)}),
        ("openai", {"GPT 5": Decimal(1)}),
        ("openai", {"gpt-5": Decimal(-1)}),
        ("cluster", {"Standard_X": Decimal(100_001)}),
        ("reservation", {"a100": Decimal(1)}),
        ("cluster", {f"Standard_N{n}": Decimal(1) for n in range(51)}),
    ],
)
def test_prices_that_nobody_could_choose_are_refused(
    scene: Scene, key: str, prices: dict[str, Decimal]
) -> None:
    with pytest.raises(BadInput):
        offering_actions.change(key, by=scene.priya, prices=prices)


def test_offerings_change_places(scene: Scene) -> None:
    usual = list(OFFERINGS)
    assert keys() == usual
    offering_actions.move("volume", by=scene.priya, up=True)
    assert keys()[:3] == ["gpus", "volume", "notebook"]
    offering_actions.move("volume", by=scene.priya, up=False)
    assert keys() == usual
    offering_actions.move("gpus", by=scene.priya, up=True)
    offering_actions.move("cluster", by=scene.priya, up=False)
    assert keys() == usual
    offering_actions.change("cluster", by=scene.priya, position=1)
    assert keys() == ["cluster", *usual[:-1]]


@pytest.mark.parametrize(
    "change", [{"gate": "nobody"}, {"position": 0}, {"position": 10}]
)
def test_gates_and_places_that_are_none_are_refused(
    scene: Scene, change: dict[str, object]
) -> None:
    with pytest.raises(BadInput):
        offering_actions.change("volume", by=scene.priya, **change)  # type: ignore[arg-type]


def test_each_change_is_told_with_what_was_before_and_none_when_nothing_changed(
    scene: Scene,
) -> None:
    offering_actions.change(
        "volume", by=scene.priya, enabled=False, gate="self_service"
    )
    event = Event.objects.latest("seq")
    assert (event.kind, event.subject_id, event.actor_name) == (
        "offering.changed",
        "volume",
        "Priya Raman",
    )
    assert event.details == {
        "offering": "Dataset volume",
        "enabled": False,
        "enabled_before": True,
    }
    offering_actions.change("volume", by=scene.priya, enabled=False)
    assert Event.objects.latest("seq") == event
