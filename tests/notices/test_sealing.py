"""Addresses of channels as they lie in the database."""

from datetime import timedelta
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.utils import timezone

from notices.channels.actions import seal_anew
from notices.kinds import Way
from notices.models import UNREADABLE, Channel, Delivery
from notices.sealing import SECRETS, Unreadable, seal, unseal
from tests.notices.test_delivery import channel, run, told_channels
from tests.posting import Running

ADDRESS = "https://hooks.slack.com/services/T0/B0/canary-1234"
NOW = timezone.now()
pytestmark = pytest.mark.django_db


def stored() -> str:
    with connection.cursor() as cursor:
        cursor.execute("SELECT url FROM notices_channel")
        return str(cursor.fetchone()[0])


def test_nobody_who_reads_the_table_reads_the_address() -> None:
    Channel.objects.create(name="Platform", way="slack", sealed=seal(ADDRESS))
    assert "hooks" not in stored()
    assert "canary" not in stored()
    kept = Channel.objects.get()
    assert (kept.url, kept.address) == (ADDRESS, "hooks.slack.com …1234")


def test_the_same_address_is_never_sealed_the_same() -> None:
    assert seal(ADDRESS) != seal(ADDRESS)


def test_a_secret_key_before_still_reads(settings: Any) -> None:
    sealed, before = seal(ADDRESS), settings.SECRET_KEY
    settings.SECRET_KEY, settings.SECRET_KEY_FALLBACKS = "another" * 10, [before]
    assert unseal(sealed) == ADDRESS
    settings.SECRET_KEY_FALLBACKS = []
    with pytest.raises(Unreadable):
        unseal(sealed)


def test_a_sealed_text_that_was_changed_is_not_read() -> None:
    sealed = seal(ADDRESS)
    with pytest.raises(Unreadable):
        unseal(f"{sealed[:-10]}{'A' if sealed[-10] != 'A' else 'B'}{sealed[-9:]}")


def test_an_address_that_cannot_be_read_is_said_and_given_again(
    post: Running, settings: Any
) -> None:
    row = channel(post, Way.SLACK)
    told_channels()
    settings.SECRET_KEY = "another" * 10
    assert row.address == UNREADABLE
    assert run(post) == 0
    delivery = Delivery.objects.get()
    assert delivery.state == "parked"
    assert "Give it again" in delivery.last_error
    row.url = post.post.described["slack"]
    row.save()
    told_channels()
    assert run(post) == 1


def webhook(**fields: Any) -> Channel:
    """A webhook that signs with two secrets, sealed under the key of now."""
    return Channel.objects.create(
        name="Pipeline",
        way="webhook",
        sealed=seal(ADDRESS),
        secret=seal("newer", purpose=SECRETS),
        former_secret=seal("older", purpose=SECRETS),
        former_secret_until=NOW + timedelta(days=1),
        **fields,
    )


def test_after_the_key_was_changed_all_is_sealed_under_the_new_one(
    settings: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    webhook()
    settings.SECRET_KEY_FALLBACKS = [settings.SECRET_KEY]
    settings.SECRET_KEY = "another" * 10
    newer = Channel.objects.create(name="Later", way="slack", sealed=seal(ADDRESS))
    call_command("seal_anew")
    assert "3 of the addresses and secrets" in capsys.readouterr().out
    settings.SECRET_KEY_FALLBACKS = []
    row = Channel.objects.get(name="Pipeline")
    assert (row.url, row.keys(NOW)) == (ADDRESS, ["newer", "older"])
    # What lay under it already is not written.
    assert Channel.objects.get(pk=newer.pk).sealed == newer.sealed
    call_command("seal_anew")
    assert "0 of the addresses and secrets" in capsys.readouterr().out


def test_a_channel_whose_key_is_missing_is_named_and_left(settings: Any) -> None:
    webhook()
    before = stored()
    settings.SECRET_KEY = "another" * 10
    with pytest.raises(CommandError, match="No key reads what is kept of Pipeline"):
        call_command("seal_anew")
    assert stored() == before


def test_a_channel_that_was_removed_meanwhile_stops_nothing() -> None:
    row = webhook()
    pk = row.pk
    row.delete()
    assert seal_anew(pk) == 0
