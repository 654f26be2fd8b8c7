"""What Azure would refuse is said before anything is sent, at the field that is wrong, and changes nothing."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest

from allocations.models import Allocation
from approvals.models import Request
from approvals.requests.actions import judge, submit
from approvals.requests.wanted import resolve
from capacity.models import Reservation, VmSize
from catalogue.choices import choices_of
from catalogue.models import setting_of
from catalogue.offerings import OFFERINGS
from fleet.models import Flavor
from tests import factories
from tests.approvals.shop import SPECS
from tests.capacity.connected import A100, Site, connected, site
from tests.sandbox.azure.running import Running
from web.refusals import BadInput

pytestmark = pytest.mark.django_db
H100, T4_OF_4 = "Standard_NC40ads_H100_v5", "Standard_NC64as_T4_v3"


@pytest.fixture
def here(azure: Running, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    with connected(azure, monkeypatch):
        yield site(azure)


def ask(here: Site, **changes: Any) -> Request:
    """Ask as the form and the API do."""
    now = here.time()
    spec = {**SPECS["reservation"], **changes}
    wanted = resolve(
        "reservation",
        spec,
        team=here.scene.team,
        until=now + timedelta(days=2),
        reason="For the review.",
    )
    return submit(wanted, by=here.scene.ada, now=now)


@pytest.mark.parametrize(
    ("changes", "code", "field", "words"),
    [
        ({"vm_size": "Standard_NC24ads_A100_v9"}, "no_price", "vm_size", "no price"),
        (
            {"region": "uksouth"},
            "region_not_read",
            "region",
            "reads no sizes of uksouth",
        ),
        ({"region": "marsnorth"}, "no_such_region", "region", "Choose a region"),
        (
            {"vm_size": A100, "zone": "3"},
            "not_in_zone",
            "zone",
            "zones 1 and 2 of eastus",
        ),
        ({"zone": "9"}, "invalid", "zone", "Choose one of"),
        ({"instances": 0}, "invalid", "instances", "At least 1"),
        ({"instances": 10_000}, "invalid", "instances", "At most 1,000"),
        (
            {"nodes_for": "dev-eastus/nothing"},
            "no_such_flavor",
            "nodes_for",
            "Choose a kind of GPU",
        ),
        (
            {"nodes_for": "dev-eastus/t4';--"},
            "invalid",
            "nodes_for",
            "Choose one of the list",
        ),
        (
            {"vm_size": T4_OF_4, "nodes_for": "dev-eastus/t4"},
            "other_nodes",
            "vm_size",
            "has 1 GPU",
        ),
    ],
)
def test_what_azure_would_refuse_is_refused_in_words(
    here: Site, changes: dict[str, Any], code: str, field: str, words: str
) -> None:
    with pytest.raises(BadInput) as refused:
        ask(here, **changes)
    assert (refused.value.code, refused.value.field) == (code, field)
    assert words in refused.value.message
    assert not Request.objects.filter(offering="reservation").exists()


def test_a_size_that_is_not_reserved_names_those_that_are(here: Site) -> None:
    setting = setting_of(OFFERINGS["reservation"])
    setting.prices = {H100: "6.98"}
    setting.save()
    with pytest.raises(BadInput) as refused:
        ask(here, vm_size=H100)
    assert refused.value.message.startswith(
        f"Azure reserves no {H100} on demand. It reserves there: "
    )
    assert A100 in refused.value.message
    assert H100 not in refused.value.message.partition("there:")[2]


def test_only_sizes_that_azure_reserves_are_offered(here: Site) -> None:
    setting = setting_of(OFFERINGS["reservation"])
    setting.prices = {H100: "6.98"}
    choices = choices_of(OFFERINGS["reservation"], setting, team=here.scene.team)
    offered = {one.value for one in choices["vm_size"]}
    assert A100 in offered
    assert H100 not in offered


def test_what_azure_says_that_it_reserves_is_offered_whatever_its_name(
    here: Site,
) -> None:
    VmSize.objects.filter(name=H100, region="eastus").update(is_reservable=True)
    setting = setting_of(OFFERINGS["reservation"])
    choices = choices_of(OFFERINGS["reservation"], setting, team=here.scene.team)
    assert H100 in {one.value for one in choices["vm_size"]}
    assert ask(here, vm_size=H100).usd > 0


def test_another_teams_kind_of_gpu_is_like_none(here: Site) -> None:
    other = factories.team("Robotics")
    Flavor.objects.filter(pk=here.flavor.pk).update(dedicated_to=other)
    with pytest.raises(BadInput) as refused:
        ask(here, nodes_for="dev-eastus/t4")
    assert refused.value.code == "no_such_flavor"


def test_the_answer_names_the_quota_that_has_too_little_left(here: Site) -> None:
    now = here.time()
    spec = {**SPECS["reservation"], "vm_size": A100, "instances": 200}
    wanted = resolve(
        "reservation", spec, team=here.scene.team, until=now + timedelta(days=2)
    )
    judged = judge(wanted, person=here.scene.ada, now=now)
    [rule] = [one for one in judged.answer.rules if one.code == "quota"]
    assert not rule.holds
    assert "more fit the subscription quota of StandardNCADSA100v4Family" in rule.text
    small = judge(wanted.of(1), person=here.scene.ada, now=now)
    assert all(one.holds for one in small.answer.rules if one.code == "quota")


def test_without_azure_a_person_finds_out(
    here: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("django.conf.settings.ENV.azure_subscription_id", "")
    made = ask(here, region="uksouth")
    assert made.state == "waiting"
    assert not Allocation.objects.filter(offering="reservation").exists()
    assert not Reservation.objects.exists()
