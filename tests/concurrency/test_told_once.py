"""Tests and daily mails at the same moment as others: nobody gets two of one, or a mail with nothing in it."""

from functools import partial

import pytest
from django.utils import timezone

from accounts.roles import Role
from notices import channels, choosing
from notices.kinds import NoticeKind
from notices.models import Channel, Delivery
from notices.sealing import seal
from tests import factories
from tests.concurrency.together import held_up
from web.refusals import Conflict

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
