"""Tokens that one person makes at the same moment: each counts the others."""

from functools import partial

import pytest
from django.utils import timezone

from accounts.tokens.actions import MOST_TOKENS, create_token
from tests import factories
from tests.concurrency.together import held_up
from web.refusals import Conflict


@pytest.mark.django_db(transaction=True)
def test_two_tokens_at_once_are_no_more_than_one_person_may_have() -> None:
    user = factories.person()
    make = partial(
        create_token, user=user, name="ci", scope="read", days=5, now=timezone.now()
    )
    for _ in range(MOST_TOKENS - 1):
        make()
    with pytest.raises(Conflict, match="Revoke one first"):
        held_up(make, by=make)
    assert user.tokens.count() == MOST_TOKENS
