"""A form in two tabs: what the first has saved is not put back by the second, which changed something else."""

from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest
from django.test import Client

from accounts.models import Team
from accounts.roles import Role
from allocations.models import Budget
from catalogue.models import OfferingSetting
from catalogue.views import price_field
from fleet.models import Cluster, Flavor
from notices.models import Channel
from notices.sealing import seal
from provisioning.models import Tenancy
from tests import factories
from tests.pages import parsed, sent_by

pytestmark = pytest.mark.django_db


@pytest.fixture
def place() -> Tenancy:
    tenancy = factories.tenancy(
        factories.team("Vision"), factories.cluster("training", title="Training")
    )
    factories.flavor(tenancy.cluster, "a100", gpus_total=24)
    return tenancy


@pytest.fixture
def priya(client: Client, place: Tenancy) -> Client:
    client.force_login(
        factories.person("Priya", Role.PLATFORM_LEAD, teams=[place.team])
    )
    return client


Change = tuple[str, str | None]


def form_of(html: str, field: str) -> dict[str, list[str]]:
    """What a browser sends of the form with such a field."""
    [form] = [
        one
        for one in parsed(html).walk()
        if one.tag == "form"
        and any(each.attrs.get("name") == field for each in one.walk())
    ]
    return sent_by(form)


def opened(browser: Client, address: str, field: str) -> dict[str, list[str]]:
    """The form of a page that is opened now."""
    return form_of(browser.get(address).content.decode(), field)


def typed(form: dict[str, list[str]], change: Change) -> dict[str, Any]:
    """The form with a field written over; None takes a tick away."""
    field, value = change
    rest = {name: texts for name, texts in form.items() if name != field}
    return rest if value is None else rest | {field: [value]}


def of_flavor() -> Any:
    return Flavor.objects.values_list("price_per_gpu_hour", "cpu_per_gpu").get()


def of_cluster() -> Any:
    return Cluster.objects.values_list("announcement", "enabled").get()


def of_budget() -> Any:
    months = Budget.objects.values_list("limit_usd", "soft_percent")
    return months.earliest("month")


def of_team() -> Any:
    return Team.objects.values_list("name", "cost_centre").get()


def of_offering() -> Any:
    rows = OfferingSetting.objects.values_list("grace_hours", "enabled")
    return rows.get(key="gpus")


def of_share() -> Any:
    return Tenancy.objects.values_list("weight", "priority_limit").get()


# An address, what one person changes there, what the other does, and what there is after both.
FORMS: list[Any] = [
    pytest.param(
        "/clusters/training/flavors/a100",
        ("price_per_gpu_hour", "3.70"),
        ("cpu_per_gpu", "9"),
        of_flavor,
        (Decimal("3.7"), 9),
        id="a kind of GPU",
    ),
    pytest.param(
        "/clusters/training/edit",
        ("announcement", "Nodes restart on Saturday."),
        ("enabled", None),
        of_cluster,
        ("Nodes restart on Saturday.", False),
        id="a cluster",
    ),
    pytest.param(
        "/teams/vision/budget",
        ("limit_usd", "90000"),
        ("soft_percent", "70"),
        of_budget,
        (Decimal(90_000), 70),
        id="a budget",
    ),
    pytest.param(
        "/teams/vision/settings",
        ("name", "Vision AI"),
        ("cost_centre", "CC-9"),
        of_team,
        ("Vision AI", "CC-9"),
        id="a team",
    ),
    pytest.param(
        "/catalogue/gpus/",
        ("grace_hours", "5"),
        ("enabled", None),
        of_offering,
        (5, False),
        id="an offering",
    ),
    pytest.param(
        "/tenancies/1/shares",
        ("weight", "3"),
        ("priority_limit", "exploratory"),
        of_share,
        (3, "exploratory"),
        id="a share",
    ),
]
OTHERWISE = {
    "price_per_gpu_hour": "3.60",
    "announcement": "Later.",
    "limit_usd": "80000",
    "name": "Vision 2",
    "grace_hours": "7",
    "weight": "4",
}


@pytest.fixture
def address(request: pytest.FixtureRequest, place: Tenancy) -> str:
    """Where the form is."""
    return str(request.param).replace("/1/", f"/{place.pk}/")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("address", "first", "second", "read", "found"), FORMS, indirect=["address"]
)
def test_what_two_people_change_stays(
    priya: Client,
    address: str,
    first: Change,
    second: Change,
    read: Callable[[], Any],
    found: Any,
) -> None:
    one, two = (opened(priya, address, second[0]) for _ in range(2))
    for form, change in ((one, first), (two, second)):
        assert priya.post(address, typed(form, change)).status_code == 302
    assert read() == found


@pytest.mark.slow
@pytest.mark.parametrize(
    ("address", "first", "second", "read", "found"), FORMS, indirect=["address"]
)
def test_of_what_both_change_the_second_is_asked_once(
    priya: Client,
    address: str,
    first: Change,
    second: Change,
    read: Callable[[], Any],
    found: Any,
) -> None:
    field = first[0]
    one, two = (opened(priya, address, field) for _ in range(2))
    assert priya.post(address, typed(one, first)).status_code == 302
    then = read()
    answer = priya.post(address, typed(two, (field, OTHERWISE[field])))
    assert answer.status_code == 422
    assert "Somebody has changed this meanwhile" in answer.content.decode()
    assert read() == then
    again = form_of(answer.content.decode(), field)
    assert again[field] == [OTHERWISE[field]]
    assert priya.post(address, again).status_code == 302
    assert read() != then


def test_what_a_channel_is_told_stays(priya: Client) -> None:
    row = Channel.objects.create(
        name="Platform",
        way="slack",
        kinds=["request_waiting"],
        sealed=seal("https://hooks.slack.com/x"),
    )
    address = f"/settings/channels/{row.pk}"
    one, two = (opened(priya, address, "name") for _ in range(2))
    assert priya.post(address, one | {"kinds": ["budget_soft"]}).status_code == 302
    assert priya.post(address, two | {"name": ["Money"]}).status_code == 302
    row.refresh_from_db()
    assert (row.name, row.kinds) == ("Money", ["budget_soft"])


def prices() -> dict[str, str]:
    """What each model costs."""
    found: dict[str, str] = OfferingSetting.objects.get(key="openai").prices
    return {
        name: f"{Decimal(price):f}".rstrip("0").rstrip(".")
        for name, price in found.items()
    }


def test_a_price_that_somebody_has_added_meanwhile_stays(priya: Client) -> None:
    address = "/catalogue/openai/"
    one, two = (opened(priya, address, "enabled") for _ in range(2))
    added = one | {"new_name": ["aa"], "new_price": ["7"]}
    assert priya.post(address, added).status_code == 302
    assert priya.post(address, typed(two, ("enabled", None))).status_code == 302
    assert prices()["aa"] == "7"


def test_a_price_stays_that_of_its_thing_however_many_are_added(priya: Client) -> None:
    address = "/catalogue/openai/"
    form = opened(priya, address, "enabled")
    form |= {"new_name": ["zz-model"], "new_price": ["50"]}
    assert priya.post(address, form).status_code == 302
    one, two = (opened(priya, address, "enabled") for _ in range(2))
    added = one | {"new_name": ["aa"], "new_price": ["7"]}
    assert priya.post(address, added).status_code == 302
    changed = typed(two, (price_field("zz-model"), "51"))
    assert priya.post(address, changed).status_code == 302
    assert (prices()["aa"], prices()["zz-model"]) == ("7", "51")
