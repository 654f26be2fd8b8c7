"""What teams hold, and giving it back."""

from __future__ import annotations

from typing import Any

import click

from qm import completing, request_words, words
from qm.calls import Portal, key_of
from qm.commands.finding import nothing_held, refuse_unknown_team
from qm.commands.options import as_json, limited, of_team, one_request, portal, unasked
from qm.option_types import WholeNumber
from qm.sending import confirm, is_asked, sent

# New columns stand behind the others: scripts count them.
LISTED = ("request", "what", "state", "where", "until", "used", "USD a day", "team")


@click.command()
@of_team
@click.option(
    "--all", "with_over", is_flag=True, help="What is booked or has ended, too."
)
@limited
@as_json
def allocations(team: str | None, with_over: bool, limit: int, is_json: bool) -> None:
    """What your teams hold. Until when, how much of it their work uses, and the request that it was granted for."""
    api = portal()
    found = api.listed(
        "allocations/", most=limit, team=team, held=None if with_over else "true"
    )
    if team and not found["results"]:
        refuse_unknown_team(api, team)
    if is_json:
        return words.printed(found)
    if not found["results"]:
        return words.note("Nothing is held: qm ask asks for GPUs.")
    utilisation = api.get("utilisation/", team=team)["results"]
    rows = [
        (
            request_words.request_number(one),
            one["what"],
            one["state"].replace("_", " "),
            f"{one['cluster']}/{one['flavor']}" if one["flavor"] else one["where"],
            words.moment(one["until"]),
            request_words.used(one, utilisation),
            one["usd_per_day"],
            one["team"]["slug"],
        )
        for one in found["results"]
    ]
    click.echo(words.table(LISTED, rows))
    return words.note("There is more: --limit shows it.") if found["next"] else None


@click.command("give-back")
@one_request(completing.held_requests)
@click.option(
    "--gpus",
    type=WholeNumber(min=1),
    metavar="N",
    help="So many of them; all otherwise.",
)
@click.option(
    "--machines",
    type=WholeNumber(min=1),
    metavar="N",
    help="So many machines of a capacity reservation; all otherwise.",
)
@click.option(
    "--reason",
    metavar="TEXT",
    default="",
    help="Why; needed of who is not of the team.",
)
@click.option(
    "--dry-run", is_flag=True, help="Say what it would change, and send nothing."
)
@unasked
@click.option(
    "--key",
    default="",
    metavar="KEY",
    help="What is sent twice with one key is given back once.",
)
@as_json
def give_back(
    number: int,
    gpus: int | None,
    machines: int | None,
    reason: str,
    dry_run: bool,
    is_sure: bool,
    key: str,
    is_json: bool,
) -> None:
    """End what a request gave before its date, or cancel a booking. What it will not cost is free again.

    In a terminal it says first what that changes.
    """
    api, key = portal(), key_of(key)
    request = api.get(f"requests/{number}/")
    held = request["allocation"]
    if held is None:
        raise nothing_held(request)
    amount = _amount(held, gpus=gpus, machines=machines)
    is_counted = _is_pool(held) or bool(amount)
    if dry_run or is_asked(is_sure=is_sure):
        effect = _effect(api, held, amount) if is_counted else held
        _tell(effect, held, dry_run, is_json)
    if dry_run:
        return words.note("Nothing is sent. To send it, leave out --dry-run.")
    confirm(_question(held, amount), is_sure=is_sure)
    body = {**amount, "reason": reason} if reason else amount
    path = (
        f"allocations/{held['id']}/give-back/"
        if is_counted
        else f"requests/{number}/let-go/"
    )
    advice = f"It may be given back. To send it again without giving back more, add: --key {key}"
    found = sent(api, path, body, key=key, advice=advice)
    if is_json:
        return words.printed(found)
    return words.note(
        _given_back(number, found)
        if is_counted
        else f"Request {number}: {request_words.stage(found)}."
    )


def _is_pool(held: dict[str, Any]) -> bool:
    """Whether it is GPUs of a pool, and has begun: of them the portal says what giving back changes."""
    return bool(held["flavor"]) and held["begun_at"] is not None


def _amount(
    held: dict[str, Any], *, gpus: int | None, machines: int | None
) -> dict[str, Any]:
    """How many go back, as the portal takes it; empty for all. Raises UsageError where it cannot be counted so."""
    is_reserved = held["offering"] == "reservation" and held["begun_at"] is not None
    if gpus is not None and not _is_pool(held):
        instead = (
            "say --machines of a reservation" if is_reserved else "this ends as a whole"
        )
        raise click.UsageError(f"--gpus is for GPUs that are held: {instead}.")
    if machines is not None and not is_reserved:
        raise click.UsageError("--machines is for machines that are reserved.")
    amounts = {"gpus": gpus, "machines": machines}
    return {unit: count for unit, count in amounts.items() if count is not None}


def _effect(
    api: Portal, held: dict[str, Any], amount: dict[str, Any]
) -> dict[str, Any]:
    """What the portal says that giving so many back changes."""
    return dict(api.post(f"allocations/{held['id']}/give-back/preview/", amount))


def _tell(
    effect: dict[str, Any], held: dict[str, Any], is_dry: bool, is_json: bool
) -> None:
    """Beside what is asked on stderr; alone, where nothing is sent, on stdout."""
    if is_json:
        return words.printed(effect) if is_dry else None
    facts = (
        request_words.ending(held)
        if effect is held
        else request_words.giving_back(effect, held)
    )
    return click.echo(words.facts(facts), err=not is_dry)


def _question(held: dict[str, Any], amount: dict[str, Any]) -> str:
    place = f" of {held['where']}" if held["where"] else ""
    if held["begun_at"] is None:
        return f"Cancel the booking of {held['what']}{place} from {words.moment(held['starts_at'])}?"
    if "machines" in amount:
        return f"Give back {amount['machines']} of {held['what']}{place}?"
    gpus = amount.get("gpus", held["gpus"])
    if gpus >= held["gpus"]:
        return f"Give back {held['what']}{place}, held until {words.moment(held['until'])}?"
    rest = held["gpus"] - gpus
    stay = "stays" if rest == 1 else "stay"
    return f"Give back {gpus} of {held['what']}{place}? {rest} {stay} until {words.moment(held['until'])}."


def _given_back(number: int, found: dict[str, Any]) -> str:
    rest = found["rest"]
    stays = (
        f"which leaves {rest['what']} until {words.moment(rest['until'])}"
        if rest
        else "nothing of it stays"
    )
    return f"Request {number}: given back, {stays}."
