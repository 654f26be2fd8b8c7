"""What a word of the command line names: a run, what is held under a request, a team."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from urllib.parse import quote

from qm import request_words
from qm.calls import Portal
from qm.endings import Code, Ended

# So many runs are looked through for one by the beginning of its name, the newest first.
LOOKED_THROUGH = 1_000
# As Kubernetes names objects; the portal would refuse to look for anything else.
WHOLE_NAME = re.compile(r"[a-z][a-z0-9-]{0,62}")


def run_of(api: Portal, word: str) -> dict[str, Any]:
    """The run of a number, a name, or the beginning of one name; raises Ended for none or several."""
    if word.isdigit():
        return dict(api.get(f"runs/{word}/"))
    matching = _of_name(api, word) or [
        one
        for one in api.listed("runs/", most=LOOKED_THROUGH)["results"]
        if one["name"].startswith(word)
    ]
    if not matching:
        raise Ended(
            f"There is no run whose name begins with {word}: qm list --all",
            Code.NOT_FOUND,
        )
    if len(matching) > 1:
        names = "\n".join(
            f"  {one['id']}  {one['name']}  {one['state']}" for one in matching[:20]
        )
        raise Ended(
            f"{len(matching)} runs begin with {word}. Give the number of one:\n{names}",
            Code.USAGE,
        )
    return dict(api.get(f"runs/{matching[0]['id']}/"))


def _of_name(api: Portal, word: str) -> list[dict[str, Any]]:
    """The runs with exactly this name, however old they are: one for each namespace that has one."""
    if not WHOLE_NAME.fullmatch(word):
        return []
    rows = api.listed("runs/", most=None, name=word)["results"]
    return [one for one in rows if one["name"] == word]


def nothing_held(request: Mapping[str, Any]) -> Ended:
    """The refusal of what can only be done with what is held."""
    waits = request["state"] == "waiting"
    advice = (
        f"It can be taken back: qm withdraw {request['id']}"
        if waits
        else "What your teams hold, and under which request: qm allocations"
    )
    return Ended(
        f"Nothing is held under request {request['id']}, which is {request_words.stage(request)}. {advice}",
        Code.REFUSED,
    )


@contextmanager
def known_team(api: Portal, slug: str) -> Iterator[None]:
    """Whatever is not found meanwhile is so for want of the team, which is said with those that there are."""
    try:
        yield
    except Ended as ended:
        if ended.exit_code == Code.NOT_FOUND:
            refuse_unknown_team(api, slug)
        raise


def refuse_unknown_team(api: Portal, slug: str) -> None:
    """Raises Ended for a team that there is not, or that is not this person's to see."""
    try:
        api.get(f"teams/{quote(slug, safe='')}/")
    except Ended as ended:
        if ended.exit_code != Code.NOT_FOUND:
            raise
        own = ", ".join(one["slug"] for one in api.get("me/")["teams"]) or "none"
        raise Ended(
            f"There is no team {slug} that you may see. Your teams: {own}.",
            Code.NOT_FOUND,
        ) from None
