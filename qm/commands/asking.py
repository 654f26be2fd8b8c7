"""Asking for GPUs, and for what is held to go on longer; each tells what would be said before it is sent."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import Any, TypeVar
from urllib.parse import quote

import click

from qm import asking, awaiting, completing, moments, request_words, words
from qm.calls import Portal, key_of
from qm.commands.finding import known_team, nothing_held
from qm.commands.options import (
    as_json,
    lasting,
    of_purpose,
    one_request,
    portal,
    unasked,
)
from qm.endings import Code, Ended
from qm.option_types import WholeNumber, lower_case
from qm.sending import confirm, previewed, sent

F = TypeVar("F", bound=Callable[..., Any])
USUAL_RENEWAL = timedelta(days=7)
ADVICE = "It may have been sent. To send it again without a second request, add: --key "


@dataclass(frozen=True)
class Ask:
    """What is sent, where and under which key, how it is told of, and what to do where no answer is heard."""

    path: str
    body: Mapping[str, Any]
    facts: Sequence[tuple[str, object]]
    key: str
    advice: str
    # A key that was given by hand may have come before.
    may_be_repeated: bool


def sending(command: F) -> F:
    """`--reason`, `--dry-run`, `--wait`, `--yes`, `--key` and `--json`, of what asks the policy."""
    for option in (
        as_json,
        click.option(
            "--key",
            default="",
            metavar="KEY",
            help="What is sent twice with one key is one request.",
        ),
        unasked,
        click.option(
            "--wait", is_flag=True, help="Return when it is there, or does not come."
        ),
        click.option(
            "--dry-run",
            is_flag=True,
            help="What would be said to it, and what it costs; nothing is sent.",
        ),
        click.option(
            "--reason",
            metavar="TEXT",
            default="",
            help="What it is for; needed where people decide.",
        ),
    ):
        command = option(command)
    return command


@click.command()
@click.option(
    "--gpus", type=WholeNumber(min=1), metavar="N", required=True, help="How many."
)
@click.option(
    "--flavor",
    metavar="NAME",
    default="",
    callback=lower_case,
    shell_complete=completing.offered_flavors,
    help="The kind of GPU, such as a100-80gb; with its cluster before it where several have it.",
)
@lasting
@click.option(
    "--from",
    "begins",
    metavar="MOMENT",
    default="",
    help="It begins then, and not at once.",
)
@click.option(
    "--team",
    metavar="SLUG",
    default="",
    shell_complete=completing.teams,
    help="For this team, of several.",
)
@click.option(
    "--project",
    metavar="SLUG",
    default="",
    shell_complete=completing.projects,
    help="For this project's namespace, where the team has several.",
)
@click.option("--namespace", metavar="NAME", default="", help="For this namespace.")
@of_purpose
@sending
def ask(dry_run: bool, wait: bool, is_sure: bool, is_json: bool, **given: Any) -> None:
    """Ask for GPUs. It tells first whether that is automatic, who decides otherwise, and what it costs.

    A day and a time are those of this machine, unless they name a zone.
    """
    key, now = key_of(given["key"]), datetime.now(timezone.utc)
    if given["project"] and given["namespace"]:
        raise click.UsageError("Give --project or --namespace, not both.")
    # Nothing is asked of the portal for what cannot be sent.
    period = asking.period(given, now=now)
    api = portal()
    body = {**_what(api, given), **period}
    facts = [
        ("ask", f"{body['gpus']} × {body['flavor']} for {body['team']}"),
        ("namespace", body.get("namespace")),
        ("from", words.moment(body.get("starts_at"))),
        ("until", words.moment(body["until"])),
    ]
    # The end of what begins at once moves with the clock: the same key takes the same end alone.
    same_end = f" --until {body['until']} instead of --for" if given["length"] else ""
    wanted = Ask(
        "requests/", body, facts, key, f"{ADVICE}{key}{same_end}", bool(given["key"])
    )
    _asked(api, wanted, dry_run=dry_run, wait=wait, is_sure=is_sure, is_json=is_json)


@click.command()
@one_request(completing.held_requests)
@click.option(
    "--for",
    "length",
    metavar="TIME",
    default="",
    help="So much longer: 8h, 3d, 2w; 7d otherwise.",
)
@click.option(
    "--until",
    metavar="MOMENT",
    default="",
    help="Until then: 2026-12-05, 2026-12-05T18:00.",
)
@sending
def renew(
    number: int, dry_run: bool, wait: bool, is_sure: bool, is_json: bool, **given: Any
) -> None:
    """Ask for the GPUs of a request to go on longer. It is judged as any ask.

    Granted before their end, they go on without a gap; otherwise they end then.
    """
    key, api = key_of(given["key"]), portal()
    request = api.get(f"requests/{number}/")
    held = request["allocation"]
    # Once it is granted, the same call finds nothing held any more, and its answer comes again.
    if held is None and not (given["key"] and given["until"]):
        raise nothing_held(request)
    until = asking.longer(
        given,
        held_until=moments.read((held or request)["until"]),
        usual=USUAL_RENEWAL,
    )
    body = {"until": until, **({"reason": given["reason"]} if given["reason"] else {})}
    present = words.moment((held or request)["until"])
    facts = [
        (
            "renewal",
            f"{(held or {}).get('what') or request['name']}, of request {number}",
        ),
        ("for", request["team"]["slug"]),
        ("until", f"{words.moment(until)}; {present} as it is"),
    ]
    instead = " instead of --for" if given["length"] else ""
    same_end = "" if given["until"] else f" --until {until}{instead}"
    path, advice = f"requests/{number}/renew/", f"{ADVICE}{key}{same_end}"
    wanted = Ask(path, body, facts, key, advice, bool(given["key"]))
    _asked(api, wanted, dry_run=dry_run, wait=wait, is_sure=is_sure, is_json=is_json)


def _what(api: Portal, given: Mapping[str, Any]) -> dict[str, Any]:
    """What is asked for and for whom, with what was left to be chosen."""
    team = asking.team_of(
        [] if given["team"] else api.get("me/")["teams"], given["team"]
    )
    with known_team(api, team):
        options = api.get("options/flavors/", team=team)["results"]
    flavor = asking.flavor_of(options, given["flavor"], team=team)
    namespace = given["namespace"]
    if given["project"]:
        projects = api.get(f"teams/{quote(team, safe='')}/projects/")["results"]
        namespace = asking.namespace_of(
            projects, given["project"], cluster=flavor.partition("/")[0], team=team
        )
    optional = {"namespace": namespace, "reason": given["reason"]}
    return {
        "team": team,
        "flavor": flavor,
        "gpus": given["gpus"],
        "purpose": given["purpose"],
        **{name: value for name, value in optional.items() if value},
    }


def _asked(
    api: Portal,
    wanted: Ask,
    *,
    dry_run: bool,
    wait: bool,
    is_sure: bool,
    is_json: bool,
) -> None:
    """Tell what would be said to an ask, send it unless that is all that was wanted, and tell what was said."""
    may_be_done = wanted.may_be_repeated and not dry_run
    plan = previewed(api, f"{wanted.path}preview/", wanted.body, or_done=may_be_done)
    if plan is not None:
        _tell(plan, wanted, is_dry=dry_run, is_json=is_json)
    if dry_run:
        return words.note("Nothing is sent. To send it, leave out --dry-run.")
    confirm("Ask for it?", is_sure=is_sure)
    found = sent(api, wanted.path, wanted.body, key=wanted.key, advice=wanted.advice)
    words.note(f"Sent: {api.url}/requests/{found['id']}")
    return _answered(api, found, wait=wait, is_json=is_json)


def _tell(plan: Mapping[str, Any], wanted: Ask, *, is_dry: bool, is_json: bool) -> None:
    """Write what would be said; raises Ended for what is not possible, unless it may be a repetition."""
    if is_dry and is_json:
        words.printed(plan)
    else:
        text = words.facts([*wanted.facts, *request_words.answer(plan)])
        click.echo(text, err=not is_dry)
        for sentence in request_words.vacancies(plan):
            words.note(sentence)
    may_be_done = wanted.may_be_repeated and not is_dry
    if not (request_words.is_possible(plan) or may_be_done):
        raise Ended("It is not possible as it stands: nothing is sent.", Code.REFUSED)


def _answered(
    api: Portal, found: Mapping[str, Any], *, wait: bool, is_json: bool
) -> None:
    """Tell of a request that was sent, and stay with it as long as was asked for."""
    if wait:
        found = awaiting.wait(api, found)
    else:
        words.note(request_words.progress(found))
    if is_json:
        words.printed(found)
    else:
        click.echo(found["id"])
    if wait:
        awaiting.ended(found)
