"""A stand-in is never of the team that asks, and the record says for whom they decided."""

from datetime import timedelta
from typing import Any

import pytest

from accounts.models import Delegation
from approvals.decisions import actions as decisions
from approvals.decisions import deciders
from approvals.decisions.routing import open_step
from approvals.requests.timeline import _decided
from notices.models import Notice
from tests import factories
from tests.scene import NOW, Scene
from web.refusals import NoRight

DAY = timedelta(days=1)


def lend(scene: Scene, **person: Any) -> Delegation:
    ben = factories.person("Ben Ruiz", **person)
    return Delegation.objects.create(
        giver=scene.priya,
        to=ben,
        starts_at=NOW - DAY,
        until=NOW + DAY,
        accepted_at=NOW - DAY,
    )


def test_nobody_of_the_team_that_asks_stands_in(scene: Scene) -> None:
    ben = lend(scene, teams=[scene.team]).to
    request = scene.ask(8)
    step = open_step(request)
    assert step is not None
    assert ben not in deciders.candidates(step, request, now=NOW)
    assert not Notice.objects.filter(kind="request_waiting", person=ben).exists()
    with pytest.raises(NoRight):
        decisions.approve(request.pk, by=ben, expected_version=request.version, now=NOW)


def test_the_record_and_the_mail_say_for_whom(scene: Scene) -> None:
    ben = lend(scene).to
    request = scene.ask(8)
    decisions.reject(
        request.pk,
        by=ben,
        expected_version=request.version,
        reason="Too many.",
        now=NOW,
    )
    assert _decided(request.decisions.get())["who"] == "Ben Ruiz for Priya Raman"
    told = Notice.objects.get(kind="request_decided", person=scene.ada).said.sentence
    assert told.startswith("Ben Ruiz for Priya Raman rejected it")


def test_a_mail_names_the_rule_what_stays_free_and_who_else_waits(scene: Scene) -> None:
    scene.ask(8)
    scene.ask(8)
    facts = dict(Notice.objects.filter(kind="request_waiting").latest("id").said.facts)
    assert facts["Why people decide"]
    assert facts["Stays free"].endswith("of 24")
    assert facts["Others who wait for these"] == "1"
