"""Browsers of signed-in people, and what an attack must not leave behind."""

from typing import Any

from django.db import connection
from django.test import Client

from accounts.models import User
from audit.models import Event

# What a look or a refusal may write: the session, the last use of a token, the refusal's own event.
MAY_CHANGE = (
    "django_session",
    "accounts_apitoken",
    "audit_event",
    "audit_head",
    "audit_refusalcount",
    "accounts_contact",
    "catalogue_offeringsetting",
)


def as_(user: User) -> Client:
    """A browser in which somebody is signed in."""
    client = Client()
    client.force_login(user)
    return client


def text_of(response: Any) -> str:
    """The page's text."""
    return str(response.content.decode())


def state_of_everything() -> dict[str, str]:
    """A digest of every table in which something that matters stands."""
    with connection.cursor() as cursor:
        names = [
            name
            for name in connection.introspection.table_names(cursor)
            if name not in MAY_CHANGE
        ]
        row = "(to_jsonb(t) - 'last_login')::text"  # signing in writes that one
        parts = [
            f"SELECT '{name}', coalesce(md5(string_agg({row}, '|' ORDER BY {row})), '') FROM \"{name}\" t"
            for name in names
        ]
        cursor.execute(" UNION ALL ".join(parts))
        return dict(cursor.fetchall())


def refusals() -> list[tuple[str, str]]:
    """Who was refused with which code, in order."""
    rows = Event.objects.filter(kind="refused").order_by("seq")
    return [(row.actor_name, row.details.get("code", "")) for row in rows]
