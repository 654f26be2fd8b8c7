"""Tests and daily mails at the same moment as others: nobody gets two of one, or a mail with nothing in it."""

from datetime import timedelta
from functools import partial

import pytest
from django.db import transaction
from django.utils import timezone

from accounts.models import User
from accounts.roles import Role
from notices import choosing, digest
from notices.actions import tell
from notices.channels import actions as channels
from notices.kinds import NoticeKind, Pace
from notices.message import Message
from notices.models import Channel, Delivery, Notice, Preference
from notices.sealing import seal
from tests import factories
from tests.concurrency.together import held_up
from tests.scene import scene as make
from web.refusals import Conflict
from workloads.runs import ending, telling
from workloads.runs.states import State

KIND = NoticeKind.REQUEST_WAITING


@pytest.mark.django_db(transaction=True)
def test_who_asks_for_two_test_mails_at_once_gets_one() -> None:
    ada = factories.person("Ada", email="ada@example.com")
    test = partial(choosing.send_test, ada, now=timezone.now())
    with pytest.raises(Conflict, match="still on its way"):
        held_up(test, by=test)
    assert Delivery.objects.count() == 1


@pytest.mark.django_db(transaction=True)
def test_a_channel_that_is_tested_twice_at_once_gets_one_test() -> None:
    lead = factories.person("Priya", Role.PLATFORM_LEAD)
    channel = Channel.objects.create(
        name="ops",
        way="slack",
        sealed=seal("https://hooks.example.com/x"),
        kinds=[KIND],
    )
    test = partial(channels.test_channel, channel.pk, by=lead, now=timezone.now())
    with pytest.raises(Conflict, match="still on its way"):
        held_up(test, by=test)
    assert Delivery.objects.count() == 1


def tell_for_digest(person: User, *, days_ago: int) -> None:
    Preference.objects.create(person=person, kind=KIND, pace=Pace.DIGEST)
    with transaction.atomic():
        tell(
            KIND,
            to=[person],
            subject=("request", 1),
            link="/requests/1/",
            message=Message("A request waits", "It is yours to decide."),
            now=timezone.now() - timedelta(days=days_ago),
        )


@pytest.mark.django_db(transaction=True)
def test_a_kind_that_is_switched_off_while_the_daily_mail_is_written_leaves_no_empty_mail() -> (
    None
):
    ada = factories.person("Ada", email="ada@example.com")
    tell_for_digest(ada, days_ago=2)
    held_up(
        lambda: choosing.choose(ada, paces={KIND: Pace.NONE}),
        by=lambda: digest.collect(now=timezone.now()),
    )
    mail = Delivery.objects.get(digest__person=ada).digest
    assert mail is not None
    assert mail.notices.count() == 1


@pytest.mark.django_db(transaction=True)
def test_an_end_that_waited_for_its_log_is_told_once() -> None:
    scene = make()
    now = timezone.now()
    run = factories.run(
        scene.tenancy,
        scene.ada,
        created_at=now - timedelta(hours=1),
        started_at=now - timedelta(hours=1),
        running_since=now - timedelta(hours=1),
        state=State.RUNNING,
    )
    ending.end(run.pk, State.FAILED, now=now)
    tell_of_it = partial(telling.tell_waiting, run.pk, now=now)
    held_up(tell_of_it, by=tell_of_it)
    assert Notice.objects.filter(kind=NoticeKind.RUN_ENDED).count() == 1
