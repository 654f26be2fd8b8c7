"""Looking at requests, waiting for them, talking about them, and taking them back."""

from __future__ import annotations

from typing import Any

import click

from qm import awaiting, completing, request_words, words
from qm.calls import Portal, key_of
from qm.commands.finding import refuse_unknown_team
from qm.commands.options import (
    as_json,
    limited,
    of_team,
    one_request,
    portal,
)
from qm.sending import sent

STATES = ("waiting", "approved", "rejected", "withdrawn", "lapsed")
# New columns stand behind the others: scripts count them.
LISTED = ("id", "what", "state", "where", "until", "team", "by", "cost", "whose turn")


@click.command("requests")
@of_team
@click.option("--state", type=click.Choice(STATES), help="Decided so alone.")
@click.option("--mine", is_flag=True, help="One's own alone.")
@click.option("--all", "with_over", is_flag=True, help="Those that are over, too.")
@limited
@as_json
def list_requests(
    team: str | None,
    state: str | None,
    mine: bool,
    with_over: bool,
    limit: int,
    is_json: bool,
) -> None:
    """The newest requests of your teams. Each with its state, and who must act for it to go on."""
    api = portal()
    found = api.listed(
        "requests/",
        most=limit,
        team=team,
        state=state,
        requester=api.get("me/")["oid"] if mine else None,
        live=None if with_over or state else "true",
    )
    if team and not found["results"]:
        refuse_unknown_team(api, team)
    if is_json:
        return words.printed(found)
    rows = [_row(api, one) for one in found["results"]]
    if not rows:
        return words.note(
            "There are none."
            if with_over or state
            else "None waits or is held: --all shows earlier ones."
        )
    click.echo(words.table(LISTED, rows))
    return words.note("There are more: --limit shows them.") if found["next"] else None


def _row(api: Portal, one: dict[str, Any]) -> tuple[object, ...]:
    """A line of the list; of what is not there yet, the request itself says who must act."""
    turn = (
        request_words.turn_in_short(api.get(f"requests/{one['id']}/"))
        if one["stage"] in request_words.UNFINISHED
        else ""
    )
    return (
        one["id"],
        request_words.what(one),
        request_words.stage(one),
        request_words.where(one),
        request_words.until(one),
        one["team"]["slug"],
        one["requester"]["name"],
        request_words.usd(one["usd_now"]),
        turn,
    )


@click.command("request")
@one_request(completing.requests)
@click.option(
    "--wait",
    is_flag=True,
    help="Return when what it asks for is there, or does not come.",
)
@as_json
def show_request(number: int, wait: bool, is_json: bool) -> None:
    """One request: its state, who decides, what happened and what comes.

    With --wait, the exit code says whether it was granted.
    """
    api = portal()
    found = api.get(f"requests/{number}/")
    if wait:
        found = awaiting.wait(api, found)
    if is_json:
        words.printed(found)
    elif not wait:
        _show(api, found)
    if wait:
        awaiting.ended(found)


def _show(api: Portal, found: dict[str, Any]) -> None:
    comments = api.get(f"requests/{found['id']}/comments/")["results"]
    click.echo(words.facts(request_words.request(found)))
    happened, coming = (
        request_words.events(found, comments),
        request_words.coming(found),
    )
    click.echo("\n" + words.table(("when", "what happened"), happened))
    if coming:
        click.echo("\n" + words.table(("when", "what comes"), coming))
    if any(request_words.questions(found)):
        words.note(f"Whoever asked for it answers: qm answer {found['id']} TEXT")


@click.command()
@one_request(completing.waiting_requests)
@as_json
def withdraw(number: int, is_json: bool) -> None:
    """Take a request back while it waits. What is granted is given back: qm give-back."""
    found = _sent_to(number, "withdraw", None, advice="It may be withdrawn.")
    if is_json:
        return words.printed(found)
    return words.note(f"Request {number}: {request_words.stage(found)}.")


@click.command()
@one_request(completing.waiting_requests)
@click.argument("text", metavar="TEXT")
@as_json
def answer(number: int, text: str, is_json: bool) -> None:
    """Answer what an approver asks about one's own request. It is their turn again then."""
    found = _sent_to(number, "answer", {"text": text}, advice="It may be answered.")
    if is_json:
        return words.printed(found)
    turn = request_words.full_stop(request_words.turn(found))
    return words.note(f"Request {number}: answered. {turn}".rstrip())


@click.command()
@one_request(completing.requests)
@click.argument("text", metavar="TEXT")
@as_json
def comment(number: int, text: str, is_json: bool) -> None:
    """Say something about a request. Who takes part in it is told, and nothing about it changes."""
    made = _sent_to(number, "comments", {"text": text}, advice="It may be written.")
    return words.printed(made) if is_json else words.note(f"Request {number}: written.")


def _sent_to(number: int, action: str, body: object, *, advice: str) -> dict[str, Any]:
    """What a request answers to something that is done to it once; `advice` is for who does not hear the answer."""
    return sent(
        portal(),
        f"requests/{number}/{action}/",
        body,
        key=key_of(""),
        advice=f"{advice} See: qm request {number}",
    )
