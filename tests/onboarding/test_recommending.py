"""Three questions lead to the least level of isolation that fits, and to why."""

from itertools import product

import pytest
from django.test import Client

from onboarding.recommending import KEYS, LEVELS, ORDER, QUESTIONS, recommend
from provisioning.models import Isolation
from tests import factories

ALL_ANSWERS = list(product(*(question.answers for question in QUESTIONS)))


@pytest.mark.parametrize(
    ("answers", "level"),
    [
        ({}, "namespace"),
        ({"rules": "ordinary", "payer": "shared", "neighbours": "yes"}, "namespace"),
        ({"neighbours": "no"}, "node-pool"),
        ({"rules": "compliance"}, "cluster"),
        ({"rules": "compliance", "neighbours": "no"}, "cluster"),
        ({"rules": "regulated"}, "subscription"),
        ({"payer": "separate", "neighbours": "no"}, "subscription"),
        ({"rules": "whatever", "payer": "", "else": "no"}, "namespace"),
    ],
)
def test_the_answers_lead_to_a_level(answers: dict[str, str], level: str) -> None:
    assert recommend(answers).level.value == level


@pytest.mark.parametrize("answers", ALL_ANSWERS, ids="-".join)
def test_every_level_comes_with_the_reasons_that_ask_for_it(
    answers: tuple[str, ...],
) -> None:
    said = dict(zip(KEYS, answers, strict=True))
    found = recommend(said)
    asked = [question.answers[said[question.key]] for question in QUESTIONS]
    assert ORDER.index(found.level.value) == max(
        ORDER.index(level) for _, level, _ in asked
    )
    assert found.reasons
    whys = {why for _, level, why in asked if level == found.level.value and why}
    assert set(found.reasons) == whys or (
        found.is_self_service and len(found.reasons) == 1
    )


def test_the_levels_are_those_a_tenancy_can_have() -> None:
    assert list(Isolation.values) == ORDER
    assert [level.name for level in LEVELS] == [
        str(label) for label in Isolation.labels
    ]
    assert len(set(ORDER)) == len(LEVELS)


@pytest.mark.django_db
def test_the_page_compares_the_four_and_recommends_without_a_script(
    client: Client,
) -> None:
    client.force_login(factories.person("Ada"))
    page = client.get("/isolation").content.decode()
    for level in LEVELS:
        assert level.reaches in page
        assert level.costs in page
    answered = client.get(
        "/isolation?rules=regulated&payer=shared&neighbours=no"
    ).content.decode()
    assert recommend({"rules": "regulated"}).reasons[0] in answered
    assert 'value="regulated" selected' in answered
    odd = client.get("/isolation?rules=%3Cscript%3E&neighbours=")
    assert odd.status_code == 200
    assert "<script>" not in odd.content.decode().split("recommendation")[1]
