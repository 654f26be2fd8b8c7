"""The policy's YAML: what is read comes back the same, and what is wrong is refused where it is wrong, and quickly."""

import json
import time
from dataclasses import replace
from decimal import Decimal
from importlib import import_module
from typing import Any

import pytest
from hypothesis import given, settings

from policy.document import (
    FIRST_ROUTES,
    Override,
    Policy,
    Route,
    StepPlan,
    Thresholds,
    Where,
    plain_thresholds,
    policy_from,
    read,
    seat_words,
    write,
)
from policy.models import PolicyVersion
from tests.approvals.asks import GROUP, POLICIES
from web.documents import LARGEST, DocumentRefused

LAST = {"name": "ordinary", "steps": [{"by": "platform_leads"}]}


def problems(text: str) -> list[tuple[str, str]]:
    """What is wrong with a text."""
    with pytest.raises(DocumentRefused) as refused:
        read(text)
    return list(refused.value.problems)


def places(said: dict[str, Any]) -> list[str]:
    """Where a document is wrong."""
    return [place for place, _ in problems(json.dumps(said))]


def route(**fields: Any) -> dict[str, Any]:
    """A route with one step that has these fields, before the one that takes the rest."""
    return {
        "routes": [
            {"name": "x", "gpus_from": 8, "steps": [{"by": "platform_leads"} | fields]},
            LAST,
        ]
    }


@pytest.mark.slow
@settings(max_examples=50)
@given(POLICIES)
def test_what_is_written_is_read_as_the_same_policy(policy: Policy) -> None:
    assert read(write(policy)) == policy


def test_the_same_policy_is_written_as_the_same_text() -> None:
    text = write(Policy())
    assert text == write(read(text))
    assert text.startswith("thresholds:\n  automatic_gpus: 2\n")


def test_an_empty_mapping_is_the_policy_of_the_start() -> None:
    assert read("{}") == Policy()
    assert read("lapse_days: 7\n").routes == FIRST_ROUTES


FIRST = import_module("policy.migrations.0001_initial").FIRST


def test_the_first_version_is_what_the_code_says() -> None:
    assert policy_from(FIRST) == Policy()
    # Numbers that it does not know yet are as the code has them.
    assert not {"carried_out_hours", "window_usd_team"} & FIRST["thresholds"].keys()


@pytest.mark.django_db
def test_every_installation_begins_with_the_first_version() -> None:
    assert PolicyVersion.objects.get(number=1).document == FIRST


def test_a_policy_is_written_so_that_people_can_read_it() -> None:
    security = StepPlan(by="platform_leads", name="Ärzte & Söhne")
    text = write(Policy(routes=(Route(name="ordinary", steps=(security,)),)))
    assert "name: Ärzte & Söhne" in text


def test_thresholds_are_written_as_json_with_money_as_text() -> None:
    plain = plain_thresholds(Thresholds(automatic_usd=Decimal("2500.50")))
    assert json.loads(json.dumps(plain)) == plain
    assert plain["automatic_usd"] == "2500.50"


KIND = {"offering": "gpus", "environment": "dev", "flavor": "a100", "tier": "trusted"}
MEANT = Where(
    offerings=("gpus", "notebook"),
    environments=("dev", "test"),
    flavors=("a100", "h100"),
    tiers=("trusted",),
)


def test_an_exception_holds_where_all_that_it_says_is_so() -> None:
    policy = Policy(overrides=(Override(where=MEANT, set={"automatic_gpus": 9}),))
    assert policy.thresholds_for(**KIND).automatic_gpus == 9


@pytest.mark.parametrize("but", KIND)
def test_an_exception_does_not_hold_where_one_thing_is_otherwise(but: str) -> None:
    policy = Policy(overrides=(Override(where=MEANT, set={"automatic_gpus": 9}),))
    assert policy.thresholds_for(**KIND | {but: "other"}).automatic_gpus == 2


def test_the_last_of_several_exceptions_wins() -> None:
    wide, narrow = Where(), Where(environments=("dev",))
    policy = Policy(
        overrides=(
            Override(where=wide, set={"automatic_gpus": 9, "automatic_days": 3}),
            Override(where=narrow, set={"automatic_gpus": 4}),
        )
    )
    found = policy.thresholds_for(**KIND)
    assert (found.automatic_gpus, found.automatic_days) == (4, 3)


STEPS = (StepPlan(by="platform_leads"),)
GPUS = Route(name="gpus", gpus_from=8, steps=STEPS)
MONEY = Route(name="money", usd_from=Decimal(100), steps=STEPS)
BOTH = replace(GPUS, usd_from=Decimal(100))


@pytest.mark.parametrize(
    ("way", "gpus", "usd", "takes"),
    [
        (replace(GPUS, gpus_from=None), 0, "0", True),
        (GPUS, 7, "1000", False),
        (GPUS, 8, "0", True),
        (MONEY, 99, "99.99", False),
        (MONEY, 0, "100", True),
        (BOTH, 7, "99.99", False),
        (BOTH, 8, "99.99", True),
        (BOTH, 7, "100", True),
    ],
)
def test_a_route_takes_what_reaches_one_of_its_sizes(
    way: Route, gpus: int, usd: str, takes: bool
) -> None:
    assert way.takes(gpus, Decimal(usd)) is takes


def test_the_routes_of_an_ask_are_those_of_its_kind_in_their_order() -> None:
    elsewhere = replace(GPUS, where=Where(tiers=("standard",)))
    here = replace(MONEY, where=MEANT)
    policy = Policy(routes=(elsewhere, here, *FIRST_ROUTES))
    for _ in range(2):
        assert policy.routes_for(**KIND) == (here, *FIRST_ROUTES)


@pytest.mark.parametrize(
    ("step", "words"),
    [
        (StepPlan(by="managers"), "your manager"),
        (StepPlan(by="managers", level=2), "your manager, level 2"),
        (StepPlan(by="engineering_leadership"), "engineering leadership"),
        (StepPlan(by=GROUP), "a named group"),
        (StepPlan(by=GROUP, name="the security board"), "the security board"),
    ],
)
def test_who_decides_is_said_by_name_or_by_seat(step: StepPlan, words: str) -> None:
    assert step.words == words


def test_a_seat_is_said_without_its_id() -> None:
    assert [seat_words(seat) for seat in ("platform_leads", GROUP)] == [
        "platform leads",
        "a named group",
    ]


def test_a_policy_with_everything_is_read() -> None:
    text = f"""
    thresholds: {{automatic_gpus: 4, automatic_usd: 2500.50, window_gpus_team: 12}}
    overrides:
      - where: {{offerings: [notebook], tiers: [trusted]}}
        set: {{automatic_days: 30, automatic_gpu_hours: null}}
    routes:
      - name: production
        where: {{environments: [production]}}
        steps:
          - {{by: managers, level: 2}}
          - {{by: "{GROUP}", name: the security board, quorum: 2, escalate_to: platform_leads}}
      - {{name: ordinary, steps: [{{by: platform_leads}}]}}
    """
    policy = read(text)
    trusted = policy.thresholds_for("notebook", "dev", "a100", "trusted")
    assert (
        trusted.automatic_days,
        trusted.automatic_gpu_hours,
        trusted.automatic_gpus,
    ) == (30, None, 4)
    assert (
        policy.thresholds_for("notebook", "dev", "a100", "standard")
        == policy.thresholds
    )
    first, last = policy.routes
    assert [step.words for step in first.steps] == [
        "your manager, level 2",
        "the security board",
    ]
    assert last == Route(name="ordinary", steps=(StepPlan(by="platform_leads"),))


UNKNOWN: dict[str, dict[str, Any]] = {
    "treshholds": {"treshholds": {}},
    "thresholds.automatic_gpu": {"thresholds": {"automatic_gpu": 3}},
    "overrides.0.when": {"overrides": [{"where": {}, "set": {}, "when": 1}]},
    "overrides.0.where.offering": {
        "overrides": [{"where": {"offering": ["gpus"]}, "set": {}}]
    },
    "overrides.0.set.gpus": {"overrides": [{"where": {}, "set": {"gpus": 3}}]},
    "routes.0.gpus": {"routes": [LAST | {"gpus": 8}]},
    "routes.0.where.team": {"routes": [LAST | {"where": {"team": ["vision"]}}]},
    "routes.0.steps.0.who": route(who="me"),
}


@pytest.mark.parametrize("place", UNKNOWN)
def test_an_unknown_key_is_refused_at_every_level(place: str) -> None:
    assert places(UNKNOWN[place]) == [place]


WRONG: dict[str, dict[str, Any]] = {
    "thresholds": {"thresholds": [1]},
    "thresholds.automatic_gpus": {"thresholds": {"automatic_gpus": "two"}},
    "thresholds.automatic_days": {"thresholds": {"automatic_days": 1.5}},
    "thresholds.keep_free_gpus": {"thresholds": {"keep_free_gpus": None}},
    "thresholds.automatic_usd": {"thresholds": {"automatic_usd": float("nan")}},
    "thresholds.automatic_environments.0": {
        "thresholds": {"automatic_environments": ["prod"]}
    },
    "thresholds.automatic_environments": {"thresholds": {"automatic_environments": 7}},
    "overrides": {"overrides": {"where": {}}},
    "overrides.0.where": {"overrides": [{"set": {}}]},
    "overrides.0.set.automatic_gpus": {
        "overrides": [{"where": {}, "set": {"automatic_gpus": "many"}}]
    },
    "routes": {"routes": "all"},
    "routes.0.name": {"routes": [{"steps": [{"by": "platform_leads"}]}]},
    "routes.0.steps.0.by": {"routes": [{"name": "x", "steps": [{}]}]},
    "lapse_days": {"lapse_days": "soon"},
}


@pytest.mark.parametrize("place", WRONG)
def test_a_value_of_the_wrong_type_is_refused_where_it_stands(place: str) -> None:
    assert places(WRONG[place]) == [place]


@pytest.mark.parametrize(
    ("threshold", "value", "words"),
    [
        (
            "automatic_environments.0",
            ["prod"],
            "Choose dev, test or production.",
        ),
        ("automatic_usd", "much", "Write an amount in USD."),
        ("automatic_usd", [1], "Write an amount in USD."),
        ("automatic_gpus", True, "Write a value here, not yes or no."),
    ],
)
def test_a_wrong_value_is_told_what_would_do(
    threshold: str, value: Any, words: str
) -> None:
    said = {"thresholds": {threshold.partition(".")[0]: value}}
    assert problems(json.dumps(said)) == [(f"thresholds.{threshold}", words)]


@pytest.mark.parametrize("value", [True, False])
def test_yes_and_no_are_taken_where_they_answer_a_question(value: bool) -> None:
    said = {"thresholds": {"automatic_when_unmeasured": value}}
    assert read(json.dumps(said)).thresholds.automatic_when_unmeasured is value


LONG = "a" * 120
HOURS = {"target_hours": 9_600, "remind_hours": 9_599, "escalate_hours": 9_600}
EDGES: dict[str, dict[str, Any]] = {
    "no days without people": {"thresholds": {"automatic_days": 0, "longest_days": 1}},
    "as long automatic as possible": {"thresholds": {"automatic_days": 90}},
    "as many in one ask as in the window": {"thresholds": {"automatic_gpus": 6}},
    "a window of a day": {"thresholds": {"window_days": 1}},
    "all that is held is used": {"thresholds": {"least_use_percent": 100}},
    "an hour to carry out": {"thresholds": {"carried_out_hours": 1}},
    "400 days to carry out": {"thresholds": {"carried_out_hours": 9_600}},
    "use of two weeks": {"thresholds": {"use_after_hours": 336}},
    "nothing at all": {"thresholds": {"automatic_usd": "0"}},
    "the smallest part of a dollar": {"thresholds": {"automatic_usd": "0.0001"}},
    "a billion": {"thresholds": {"automatic_usd": "1e9"}},
    "a name of 120 letters": {"routes": [LAST | {"name": LONG}]},
    "a step's name of 120 letters": route(name=LONG),
    "nine of nine": route(quorum=9),
    "the manager of nine managers": route(by="managers", level=9),
    "the longest hours": route(**HOURS),
    "the shortest hours": route(target_hours=1, remind_hours=1, escalate_hours=2),
    "a route from a billion GPUs": {
        "routes": [LAST | {"gpus_from": 1_000_000_000}, LAST]
    },
    "a day until it lapses": {"lapse_days": 1},
    "400 days until it lapses": {"lapse_days": 400},
}


@pytest.mark.parametrize("name", EDGES)
def test_the_least_and_the_most_are_taken(name: str) -> None:
    policy = read(json.dumps(EDGES[name]))
    assert read(write(policy)) == policy


CONTRADICTIONS: dict[str, tuple[str, dict[str, Any]]] = {
    "longer automatic than possible": (
        "thresholds.automatic_days",
        {"thresholds": {"automatic_days": 91}},
    ),
    "more in one ask than in the window": (
        "thresholds.window_gpus_team",
        {"thresholds": {"automatic_gpus": 7}},
    ),
    "an override that contradicts the rest": (
        "overrides.0.set.automatic_days",
        {"overrides": [{"where": {}, "set": {"longest_days": 7}}]},
    ),
    "a window of no days": (
        "thresholds.window_days",
        {"thresholds": {"window_days": 0}},
    ),
    "less than nothing": (
        "thresholds.automatic_usd",
        {"thresholds": {"automatic_usd": -1}},
    ),
    "more than anything": (
        "thresholds.automatic_usd",
        {"thresholds": {"automatic_usd": "1e12"}},
    ),
    "more than all": (
        "thresholds.least_use_percent",
        {"thresholds": {"least_use_percent": 101}},
    ),
    "a little more than a billion": (
        "thresholds.automatic_gpu_hours",
        {"thresholds": {"automatic_gpu_hours": 1_000_000_001}},
    ),
    "a smaller part of a dollar than there is": (
        "thresholds.automatic_usd",
        {"thresholds": {"automatic_usd": "0.00001"}},
    ),
    "possible for no day": (
        "thresholds.longest_days",
        {"thresholds": {"automatic_days": 0, "longest_days": 0}},
    ),
    "no hour to carry out": (
        "thresholds.carried_out_hours",
        {"thresholds": {"carried_out_hours": 0}},
    ),
    "more than 400 days to carry out": (
        "thresholds.carried_out_hours",
        {"thresholds": {"carried_out_hours": 9_601}},
    ),
    "use of longer than is kept": (
        "thresholds.use_after_hours",
        {"thresholds": {"use_after_hours": 337}},
    ),
    "a route from fewer than no GPUs": (
        "routes.0.gpus_from",
        {"routes": [LAST | {"gpus_from": -1}, LAST]},
    ),
    "a route from less than no money": (
        "routes.0.usd_from",
        {"routes": [LAST | {"usd_from": "-1"}, LAST]},
    ),
    "a name of 121 letters": (
        "routes.0.name",
        {"routes": [LAST | {"name": LONG + "a"}]},
    ),
    "a step's name of 121 letters": ("routes.0.steps.0.name", route(name=LONG + "a")),
    "no routes": ("routes", {"routes": []}),
    "a last route that leaves some over": (
        "routes",
        {"routes": [LAST | {"gpus_from": 8}]},
    ),
    "a route that is never reached": (
        "routes.0",
        {"routes": [LAST, LAST | {"name": "y"}]},
    ),
    "a route of nobody": ("routes.0.steps", {"routes": [{"name": "x", "steps": []}]}),
    "a seat that is none": ("routes.0.steps.0.by", route(by="everybody")),
    "a group that is none": ("routes.0.steps.0.by", route(by="group:1")),
    "a group of other letters": (
        "routes.0.steps.0.by",
        route(by="group:" + "0000000t-0000-4000-9000-000000000042"),
    ),
    "an escalation to a manager": (
        "routes.0.steps.0.escalate_to",
        route(escalate_to="managers"),
    ),
    "a quorum of none": ("routes.0.steps.0.quorum", route(quorum=0)),
    "a quorum of managers": ("routes.0.steps.0.quorum", route(by="managers", quorum=2)),
    "a reminder after the escalation": (
        "routes.0.steps.0.remind_hours",
        route(remind_hours=48),
    ),
    "ten of them": ("routes.0.steps.0.quorum", route(quorum=10)),
    "the tenth manager": (
        "routes.0.steps.0.level",
        route(by="managers", level=10),
    ),
    "a reminder at once": ("routes.0.steps.0.remind_hours", route(remind_hours=0)),
    "an escalation after more than 400 days": (
        "routes.0.steps.0.escalate_hours",
        route(escalate_hours=9_601),
    ),
    "a target of no time": ("routes.0.steps.0.target_hours", route(target_hours=0)),
    "a target of more than 400 days": (
        "routes.0.steps.0.target_hours",
        route(target_hours=9_601),
    ),
    "requests that lapse at once": ("lapse_days", {"lapse_days": 0}),
    "requests that lapse after more than 400 days": ("lapse_days", {"lapse_days": 401}),
}


@pytest.mark.parametrize("name", CONTRADICTIONS)
def test_what_cannot_all_be_meant_is_refused(name: str) -> None:
    place, said = CONTRADICTIONS[name]
    assert place in places(said)


LAUGHS = "a: &a [lol, lol]\n" + "\n".join(
    f"{new}: &{new} [{', '.join([f'*{old}'] * 9)}]"
    for old, new in zip("abcdefgh", "bcdefghi", strict=True)
)
HARMFUL = {
    "a billion laughs": LAUGHS,
    "an alias": "thresholds: &x {}\noverrides: *x\n",
    "an object of Python": "thresholds: !!python/object/apply:os.system ['true']\n",
    "a name of Python": "lapse_days: !!python/name:os.system\n",
    "a tag of its own": "lapse_days: !secret 3\n",
    "nesting without end": "[" * 30_000,
    "a key twice": "lapse_days: 3\nlapse_days: 4\n",
    "two documents": "lapse_days: 3\n---\nlapse_days: 4\n",
    "a tab": "thresholds:\n\tautomatic_gpus: 3\n",
    "a NUL": "lapse_days: 3\x00\n",
    "half a character": "thresholds: {automatic_gpus: '\ud800'}",
    "a list": "- 1\n",
    "a word": "policy",
    "nothing": "",
    "a number of a gigabyte": "thresholds: {automatic_usd: 1e999999999}",
    "a merge of another mapping": "<<: {lapse_days: 3}\nroutes: []\n",
}


@pytest.mark.parametrize("name", HARMFUL)
def test_what_is_no_policy_is_refused_and_harms_nobody(name: str) -> None:
    started = time.process_time()
    assert problems(HARMFUL[name])
    assert time.process_time() - started < 1


def test_a_file_of_a_megabyte_is_refused_before_it_is_read() -> None:
    text = "lapse_days: 7 # " + "é" * 500_000
    started = time.process_time()
    assert problems(text) == [("", "The file is larger than 64 kB.")]
    assert time.process_time() - started < 0.05


def test_a_file_may_have_64_thousand_bytes_and_no_byte_more() -> None:
    text = "lapse_days: 7 #"
    assert read(text + "x" * (LARGEST - len(text))).lapse_days == 7
    assert problems(text + "x" * (LARGEST - len(text) + 1))
    assert problems(text + "é" * (LARGEST - len(text) - 1))


def test_what_cannot_be_read_is_told_by_its_line() -> None:
    assert problems("lapse_days: 3\nroutes: [\n") == [
        ("line 3", "This is not YAML that can be read.")
    ]


def test_a_hundred_mistakes_are_told_fifty_at_a_time() -> None:
    said = {"overrides": [{"where": {}, "set": {}, f"x{n}": 1} for n in range(100)]}
    assert len(places(said)) == 50
