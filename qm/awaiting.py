"""Waiting for a request or a new team: until what is wanted is there, or does not come."""

from __future__ import annotations

from collections.abc import Mapping
from time import sleep
from typing import Any
from urllib.parse import quote

from qm import request_words, words
from qm.calls import Portal
from qm.endings import Code, Ended
from qm.following import Progress

# What is automatic is there in seconds; people take hours.
FIRST_PAUSE, LONGEST_PAUSE, GROWTH = 1.0, 15.0, 1.3
GRANTED = ("booked", "active", "ending_soon")


def wait(portal: Portal, request: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the request once it is granted and made, booked, or can be neither any more."""
    progress, pause = Progress(), FIRST_PAUSE
    try:
        while request["stage"] in request_words.UNFINISHED:
            progress.say(request_words.progress(request))
            sleep(pause)
            pause = min(pause * GROWTH, LONGEST_PAUSE)
            request = portal.get(f"requests/{request['id']}/", patient=True)
    except KeyboardInterrupt:
        progress.clear()
        raise Ended(_stands(request), Code.INTERRUPTED) from None
    except Ended as ended:
        if ended.exit_code != Code.NOT_SIGNED_IN:
            raise
        progress.clear()
        words = f"{ended.message}\n{_stands(request)}"
        raise Ended(words, Code.NOT_SIGNED_IN) from None
    progress.clear()
    return request


def _stands(request: Mapping[str, Any]) -> str:
    return f"Request {request['id']} stands as it was. To wait on: qm request {request['id']} --wait"


def ended(request: Mapping[str, Any]) -> None:
    """Say what became of a request; raises Ended with the code for one that gave nothing, or gives nothing any more."""
    reasons = [
        one["reason"] for one in request["decisions"][-1:] if one["verdict"] == "reject"
    ]
    texts = (
        f"Request {request['id']}: {request_words.stage(request)}.",
        request["withdrawn_because"],
        *reasons,
    )
    text = words.plain(" ".join(filter(None, texts)))
    if request["stage"] not in GRANTED:
        raise Ended(text, Code.NOT_DONE)
    words.note(text)


def there(portal: Portal, made: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a team's coming on board once its namespace is as it is wanted; tell meanwhile what stands in its way."""
    progress, pause, slug = Progress(), FIRST_PAUSE, made["team"]["slug"]
    path = f"teams/{quote(slug, safe='')}/onboarding/"
    try:
        while not made["tenancy"]["is_settled"]:
            progress.say(_so_far(made["tenancy"]))
            sleep(pause)
            pause = min(pause * GROWTH, LONGEST_PAUSE)
            made = portal.get(path, patient=True)
    except KeyboardInterrupt:
        progress.clear()
        where = f"{portal.url}/teams/{slug}/onboarding"
        raise Ended(
            f"Team {slug} is on board, and its namespace is being made: {where}",
            Code.INTERRUPTED,
        ) from None
    progress.clear()
    words.note(f"{made['tenancy']['namespace']} is there.")
    return made


def _so_far(tenancy: Mapping[str, Any]) -> str:
    ready = sum(one["state"] == "true" for one in tenancy["objects"])
    counted = (
        f"{ready} of {len(tenancy['objects'])} objects are there."
        if tenancy["objects"]
        else "It is being made."
    )
    said = f"{tenancy['namespace']}: {counted} {tenancy['explanation']}"
    return words.plain(said).rstrip()
