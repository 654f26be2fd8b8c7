"""Bringing a team on board: told first what that would make, then sent once, and followed until it is there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime, timezone
from typing import Any

import click

from qm import asking, awaiting, enrolling, request_words, words
from qm.calls import Portal, key_of
from qm.commands.options import as_json, lasting, of_purpose, portal, unasked
from qm.endings import Code, Ended
from qm.option_types import WholeNumber, lower_case
from qm.sending import confirm, previewed, sent

ENVIRONMENTS = ("dev", "test", "production")
ADVICE = "It may have been sent. To send it again without a second team, add: --key "


@click.command()
@click.argument("text", metavar="[NAME]", required=False, default="")
@as_json
def groups(text: str, is_json: bool) -> None:
    """Groups of Entra ID that may become teams: your own, or those whose names begin with NAME."""
    found = portal().get("directory/groups/", q=text)
    if is_json:
        return words.printed(found)
    rows = [
        (one["label"], one["value"], one["reason"] or "free")
        for one in found["results"]
    ]
    if not rows:
        return words.note(
            f"No group's name begins with {text}."
            if text
            else "You are in no group that has no team yet."
        )
    return click.echo(words.table(("group", "object id", "may become a team"), rows))


@click.command()
@click.argument("name", metavar="NAME")
@click.option(
    "--group",
    metavar="GROUP",
    default="",
    help="The group of Entra ID whose people are the team: its name or its object id. Your own one, where it is one.",
)
@click.option(
    "--cost-centre", metavar="CODE", required=True, help="Where its costs go."
)
@click.option(
    "--cluster",
    metavar="NAME",
    default="",
    callback=lower_case,
    help="Where its namespace is, of several.",
)
@click.option(
    "--project",
    metavar="NAME",
    default="main",
    show_default=True,
    help="Its first project.",
)
@click.option(
    "--environment",
    type=click.Choice(ENVIRONMENTS),
    default="dev",
    show_default=True,
    help="What its namespace is for. In production people decide whatever is asked for.",
)
@click.option(
    "--gpus", type=WholeNumber(min=0), metavar="N", default=0, help="Its first GPUs."
)
@click.option(
    "--flavor",
    metavar="NAME",
    default="",
    callback=lower_case,
    help="Their kind, of several that the cluster has, such as a100-80gb.",
)
@lasting
@of_purpose
@click.option(
    "--reason",
    metavar="TEXT",
    default="",
    help="What they are for; needed where people decide.",
)
@click.option(
    "--dry-run", is_flag=True, help="What it would make and cost; nothing is sent."
)
@click.option("--wait", is_flag=True, help="Return when its namespace is there.")
@unasked
@click.option(
    "--key",
    default="",
    metavar="KEY",
    help="What is sent twice with one key is one team.",
)
@as_json
def onboard(
    dry_run: bool, wait: bool, is_sure: bool, key: str, is_json: bool, **given: Any
) -> None:
    """Bring a team on board: a group of Entra ID gets a namespace of its own and, if wanted, its first GPUs.

    It tells first what that would make, and what would be said to its GPUs.
    """
    may_be_done = bool(key) and not dry_run
    key, now = key_of(key), datetime.now(timezone.utc)
    start = _start(given, now=now)
    api = portal()
    body = _body(api, given, start)
    plan = previewed(api, "teams/new/preview/", body, or_done=may_be_done)
    if plan is not None:
        _tell(body, plan, is_dry=dry_run, is_json=is_json)
    if dry_run:
        return words.note("Nothing is sent. To send it, leave out --dry-run.")
    confirm("Bring it on board?", is_sure=is_sure)
    # The end of what begins at once moves with the clock: the same key takes the same end alone.
    same_end = f" --until {start['until']} instead of --for" if given["length"] else ""
    made = sent(api, "teams/", body, key=key, advice=f"{ADVICE}{key}{same_end}")
    return _answered(api, made, wait=wait, is_json=is_json)


def _start(given: Mapping[str, Any], *, now: datetime) -> dict[str, Any]:
    """Number, end and purpose of the first GPUs; nothing without any, and raises Ended for what belongs to some."""
    if given["gpus"]:
        optional = {"reason": given["reason"]} if given["reason"] else {}
        until = asking.period({**given, "begins": ""}, now=now)["until"]
        return {
            "gpus": given["gpus"],
            "until": until,
            "purpose": given["purpose"],
            **optional,
        }
    untaken = {"--flavor": "flavor", "--for": "length", "--until": "until"}
    for option, name in untaken.items():
        if given[name]:
            raise Ended(
                f"{option} is about GPUs: say how many with --gpus.", Code.USAGE
            )
    return {}


def _body(
    api: Portal, given: Mapping[str, Any], start: Mapping[str, Any]
) -> dict[str, Any]:
    """What is sent, with what was left to be chosen."""
    cluster = enrolling.cluster_of(api, given["cluster"])
    gpus = (
        {
            "start": {
                **start,
                "flavor": enrolling.flavor_of(api, cluster, given["flavor"]),
            }
        }
        if start
        else {}
    )
    return {
        "name": given["name"],
        "entra_group": enrolling.group_of(api, given["group"]),
        "cost_centre": given["cost_centre"],
        "project": given["project"],
        "environment": given["environment"],
        "cluster": cluster,
        **gpus,
    }


def _tell(
    body: Mapping[str, Any], plan: Mapping[str, Any], *, is_dry: bool, is_json: bool
) -> None:
    """Write what it would make; raises Ended where its first GPUs are not possible."""
    if is_json and is_dry:
        words.printed(plan)
    else:
        click.echo(words.facts(_facts(body, plan)), err=not is_dry)
    if plan["start"] and not request_words.is_possible(plan["start"]):
        raise Ended("It is not possible as it stands: nothing is sent.", Code.REFUSED)


def _facts(
    body: Mapping[str, Any], plan: Mapping[str, Any]
) -> Iterator[tuple[str, object]]:
    """What bringing it on board would make, and what would be said to its first GPUs."""
    people = plan["members"]
    yield "team", f"{body['name']}, {plan['slug']} in addresses and on clusters"
    counted = "" if people is None else f", {people} in it"
    yield "group", f"{plan['entra_group_name']}{counted}"
    yield (
        "namespace",
        f"{plan['namespace']} on {body['cluster']}, for {body['environment']}",
    )
    count = len(plan["objects"])
    yield "made", f"{count} object{'' if count == 1 else 's'}"
    for sentence in plan["sentences"]:
        yield "mind", sentence
    if start := body.get("start"):
        yield "asks for", f"{start['gpus']} × {start['flavor']}"
        yield "until", words.moment(start["until"])
        yield from request_words.answer(plan["start"])


def _answered(
    api: Portal, made: Mapping[str, Any], *, wait: bool, is_json: bool
) -> None:
    """Tell of a team that was brought on board, and stay with it until its namespace is there if that was asked for."""
    slug = made["team"]["slug"]
    words.note(f"Sent: {api.url}/teams/{slug}/onboarding")
    if wait:
        made = awaiting.there(api, made)
    if made["request"]:
        words.note(request_words.progress(made["request"]))
    if is_json:
        words.printed(made)
    else:
        click.echo(slug)
