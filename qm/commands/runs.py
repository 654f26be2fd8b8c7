"""Looking at runs, ending them, and giving them another time limit."""

from __future__ import annotations

from typing import Any

import click

from qm import choosing, following, words
from qm.commands.finding import refuse_unknown_team, run_of
from qm.commands.options import as_json, limited, of_team, one_run, portal
from qm.endings import Ended

STATES = (
    "blocked",
    "submitted",
    "waiting",
    "starting",
    "running",
    "finished",
    "failed",
    "stopped",
    "refused",
    "gone",
    "skipped",
)
# How the portal refuses to stop what has ended.
RUN_IS_OVER = "run_is_over"
# New columns stand behind the others: scripts count them.
LISTED = (
    "id",
    "name",
    "state",
    "GPUs",
    "cluster",
    "team",
    "by",
    "submitted",
    "cost",
    "since",
    "why",
)


@click.command("list")
@of_team
@click.option("--state", type=click.Choice(STATES), help="In this state alone.")
@click.option("--mine", is_flag=True, help="One's own alone.")
@click.option("--all", "with_over", is_flag=True, help="Those that are over, too.")
@limited
@as_json
def list_runs(
    team: str | None,
    state: str | None,
    mine: bool,
    with_over: bool,
    limit: int,
    is_json: bool,
) -> None:
    """The newest runs of your teams. Each with since when it is in its state, and why, where there is more to say."""
    live = None if with_over or state else "true"
    api = portal()
    found = api.listed(
        "runs/",
        most=limit,
        team=team,
        state=state,
        mine="true" if mine else None,
        live=live,
        why="true",
    )
    if team and not found["results"]:
        refuse_unknown_team(api, team)
    if is_json:
        return words.printed(found)
    rows = [
        (
            one["id"],
            one["name"],
            one["state"],
            words.gpus(one),
            one["cluster"],
            one["team"]["slug"],
            one["requester"]["name"],
            words.moment(one["created_at"]),
            f"{one['cost']} USD",
            words.since(one),
            words.reason(one),
        )
        for one in found["results"]
    ]
    if not rows:
        return words.note(
            "There are none."
            if with_over or state
            else "None runs or waits: --all shows earlier ones."
        )
    click.echo(words.table(LISTED, rows))
    return words.note("There are more: --limit shows them.") if found["next"] else None


@click.command()
@one_run
@as_json
def show(run: str, is_json: bool) -> None:
    """Everything about one run. RUN is its number, its name, or how its name begins, here as everywhere."""
    found = run_of(portal(), run)
    if is_json:
        return words.printed(found)
    rows = [
        ("run", f"{found['name']} ({found['id']})"),
        ("title", found["title"]),
        ("state", found["state"]),
        ("template", found["template"]),
        ("place", f"{words.place_name(found)} (team {found['team']['slug']})"),
        ("GPUs", words.gpus(found)),
        ("by", found["requester"]["name"]),
        (
            "goes on from" if found["is_resumed"] else "same as",
            found["again_of"],
        ),
        ("begins after", words.before(found)),
        ("checkpoints", found["checkpoints"]),
        ("submitted", words.moment(found["created_at"])),
        ("started", words.moment(found["started_at"])),
        ("stop asked", words.moment(found["stop_asked_at"])),
        ("ended", words.moment(found["ended_at"])),
        ("ran", words.duration(found["ran_seconds"]) if found["started_at"] else ""),
        ("time limit", words.limit(found)),
        (
            "cost",
            f"{found['cost']} USD, {float(found['usd_per_hour']):.2f} USD an hour",
        ),
        ("GPU use", words.busy(found["gpu_use"])),
        ("cluster silent since", words.moment(found["silent_since"])),
    ]
    click.echo(f"{words.facts(rows)}\n\n{words.why(found)}")
    if attempts := words.attempts(found):
        click.echo(f"\n{attempts}")
    if found["pods"]:
        pods = [
            (
                one["number"],
                one["name"],
                one["word"],
                one["node"],
                one["restarts"],
                one["ended_as"],
            )
            for one in found["pods"]
        ]
        click.echo(
            "\n"
            + words.table(
                ("worker", "pod", "state", "node", "restarts", "ended as"), pods
            )
        )
    return None


@click.command()
@one_run
@as_json
def why(run: str, is_json: bool) -> None:
    """Why a run is where it is. Since when, its place in the line, when it starts, and what you can do."""
    found = run_of(portal(), run)
    return words.printed(found["why"]) if is_json else click.echo(words.why(found))


@click.command()
@one_run
@click.option("--wait", is_flag=True, help="Return when it is over.")
@as_json
def stop(run: str, wait: bool, is_json: bool) -> None:
    """End a run. It has its grace for a last checkpoint, then its GPUs are free. What waits for it is skipped."""
    api = portal()
    where, was_over = f"runs/{run_of(api, run)['id']}/", False
    try:
        found = api.post(f"{where}stop/")
    except Ended as refused:
        # Whoever waits for its end has it.
        was_over = wait and refused.problem == RUN_IS_OVER
        if not was_over:
            raise
        found = api.get(where)
    with_it = [] if was_over else found["skipped"]
    if wait:
        found = following.wait(api, found)
    if is_json:
        return words.printed(found)
    if was_over:
        return words.note(f"{found['name']} was over already: {found['state']}.")
    words.note(
        f"{found['name']}: "
        + (f"{found['state']}." if found["is_over"] else "it is being stopped.")
    )
    if said := words.skipped(found, with_it):
        words.note(said)
    return None


@click.command()
@one_run
@click.argument("time", metavar="TIME")
@click.option(
    "--dry-run",
    is_flag=True,
    help="Until when it would run and what it would cost at most.",
)
@as_json
def limit(run: str, time: str, dry_run: bool, is_json: bool) -> None:
    """Give a run another time limit, such as 6h, or +2h for two hours more, while it waits or runs.

    It goes on meanwhile.
    """
    api = portal()
    before = run_of(api, run)
    where, body = f"runs/{before['id']}/limit/", {"minutes": _new_limit(time, before)}
    found = api.post(f"{where}preview/" if dry_run else where, body)
    if is_json:
        return words.printed(found)
    rows = [
        ("time limit", words.duration(found["limit_seconds"])),
        (
            "ends at the latest",
            words.moment(found["ends_at" if dry_run else "limit_at"]),
        ),
        ("at most", f"{found['usd_at_limit']} USD"),
    ]
    click.echo(words.facts(rows))
    if dry_run and found["early_stops"]:
        words.note(found["early_stops"])
    return None


@click.command()
@one_run
@as_json
def wait(run: str, is_json: bool) -> None:
    """Return when a run is over. The exit code says whether it finished."""
    api = portal()
    over = following.wait(api, run_of(api, run))
    if is_json:
        words.printed(over)
    following.ended(over)


def _new_limit(text: str, run: dict[str, Any]) -> int:
    """Minutes of another time limit; with a + before it, of so much more than the run has."""
    asked = choosing.minutes(text.removeprefix("+"), of="TIME")
    has = (run["limit_seconds"] or 0) // 60
    return has + asked if text.startswith("+") else asked
