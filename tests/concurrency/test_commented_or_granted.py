"""A comment and the vote that grants a request at the same moment: neither waits for the other for ever."""

from functools import partial

import pytest
from django.utils import timezone

from accounts.models import User
from approvals.conversation.actions import comment
from approvals.decisions.actions import approve
from approvals.states import State
from tests import factories
from tests.concurrency.together import held_up
from tests.scene import scene


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("is_comment_first", [True, False])
def test_who_comments_and_who_grants_wait_for_one_another_in_one_order(
    is_comment_first: bool,
) -> None:
    made, now = scene(), timezone.now()
    request = factories.request(
        made.ada, made.tenancy, made.flavor, gpus=4, days=10, now=now
    )
    User.objects.filter(pk=made.priya.pk).update(groups_known_at=now)
    said = partial(comment, request.pk, by=made.ada, text="It is urgent.", now=now)
    vote = partial(
        approve, request.pk, by=made.priya, expected_version=request.version, now=now
    )
    first, second = (said, vote) if is_comment_first else (vote, said)
    held_up(second, by=first)
    request.refresh_from_db()
    assert request.state == State.APPROVED
    assert request.comments.count() == 1
