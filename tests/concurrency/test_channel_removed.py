"""A channel is removed while others tell it something: what they do is done, and the channel is gone."""

from functools import partial

import pytest
from django.utils import timezone

from approvals.models import Request
from notices.channels import actions as channels
from notices.kinds import NoticeKind
from notices.models import Channel
from notices.sealing import seal
from tests import factories
from tests.concurrency.together import held_up
from tests.scene import Scene, scene

KINDS = [NoticeKind.REQUEST_WAITING, NoticeKind.REQUEST_DECIDED]


def channel() -> Channel:
    return Channel.objects.create(
        name="ops", way="slack", sealed=seal("https://hooks.example.com/x"), kinds=KINDS
    )


def ask(made: Scene) -> Request:
    return factories.request(
        made.ada, made.tenancy, made.flavor, gpus=4, days=10, now=timezone.now()
    )


@pytest.mark.django_db(transaction=True)
def test_a_channel_that_is_removed_while_it_is_told_of_a_request_is_gone_after_it() -> (
    None
):
    made = scene()
    remove = partial(channels.remove_channel, channel().pk, by=made.priya)
    held_up(remove, by=lambda: ask(made))
    assert Request.objects.count() == 1
    assert not Channel.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_a_request_that_is_made_while_a_channel_is_removed_does_without_it() -> None:
    made = scene()
    remove = partial(channels.remove_channel, channel().pk, by=made.priya)
    held_up(lambda: ask(made), by=remove)
    assert Request.objects.count() == 1
    assert not Channel.objects.exists()
