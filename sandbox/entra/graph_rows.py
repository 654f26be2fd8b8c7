"""People and groups as Graph shows them."""

import json
from typing import Any

from starlette.requests import Request

from sandbox.entra.refusals import GraphRefusal
from sandbox.world import Group, Person

PERSON_FIELDS = (
    "id",
    "displayName",
    "givenName",
    "surname",
    "jobTitle",
    "mail",
    "userPrincipalName",
)
GROUP_FIELDS = (
    "id",
    "displayName",
    "description",
    "mailEnabled",
    "securityEnabled",
    "groupTypes",
)


def person_row(person: Person, enabled: bool) -> dict[str, Any]:
    """Return every property of a person."""
    given, _, surname = person.name.partition(" ")
    return {
        "id": person.oid,
        "displayName": person.name,
        "givenName": given,
        "surname": surname,
        "jobTitle": person.title,
        "mail": person.mail,
        "userPrincipalName": person.mail,
        "accountEnabled": enabled,
    }


def group_row(group: Group) -> dict[str, Any]:
    """Return every property of a group."""
    return {
        "id": group.oid,
        "displayName": group.name,
        "description": group.description or None,
        "mailEnabled": False,
        "securityEnabled": True,
        "groupTypes": [],
    }


async def body_of(request: Request) -> dict[str, Any]:
    """Return the JSON object of the body; raise GraphRefusal 400."""
    try:
        body = json.loads(await request.body() or b"{}")
    except ValueError as error:
        raise GraphRefusal(
            400, "BadRequest", "Unable to read JSON request payload."
        ) from error
    if not isinstance(body, dict):
        raise GraphRefusal(400, "BadRequest", "Unable to read JSON request payload.")
    return body
