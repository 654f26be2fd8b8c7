"""What a run writes."""

from __future__ import annotations

from typing import Any

import click

from qm import following, words, workers
from qm.calls import Portal
from qm.commands.finding import run_of
from qm.commands.options import as_json, one_run, portal, refuse_both
from qm.option_types import WholeNumber

USUAL_LINES = 1_000


@click.command()
@one_run
@click.option(
    "-f",
    "--follow",
    is_flag=True,
    help="Go on until the run is over; wait while it has not started.",
)
@click.option(
    "--pod",
    metavar="NAME",
    default="",
    help="This pod's; the first worker's otherwise.",
)
@click.option(
    "--worker",
    type=WholeNumber(min=0),
    metavar="N",
    help="The pod with this number.",
)
@click.option(
    "--all-workers",
    is_flag=True,
    help="Every pod's, each line behind its worker; with --follow all at once.",
)
@click.option(
    "--attempt",
    type=WholeNumber(min=1),
    metavar="N",
    help="What is kept of an earlier attempt, by its number in `qm show`.",
)
@click.option(
    "--tail",
    type=WholeNumber(min=1, max=5_000),
    metavar="N",
    help=f"So many lines; {USUAL_LINES:,} otherwise.",
)
@as_json
def logs(
    run: str,
    follow: bool,
    pod: str,
    worker: int | None,
    all_workers: bool,
    attempt: int | None,
    tail: int | None,
    is_json: bool,
) -> None:
    """What a run's program writes."""
    refuse_both(follow, is_json)
    if follow and attempt is not None:
        raise click.UsageError("--follow goes not with --attempt: no more comes of it.")
    if all_workers and (pod or worker is not None):
        raise click.UsageError("--all-workers goes with neither --pod nor --worker.")
    api, wanted = portal(), following.Wanted(pod, worker)
    found = run_of(api, run)
    if follow:
        over = (
            workers.follow(api, found, tail=tail)
            if all_workers
            else following.follow(api, found, wanted, tail=tail)
        )
        return following.ended(over)
    if all_workers:
        return _logs_of_all(api, found, attempt=attempt, tail=tail, is_json=is_json)
    # Without a pod the portal says why there is no log.
    one = api.get(
        f"runs/{found['id']}/logs/",
        pod=wanted.newest(found, attempt) or None,
        attempt=attempt,
        tail=tail,
    )
    if is_json:
        return words.printed(one)
    for line in one["lines"]:
        click.echo(line["text"])
    return None


def _logs_of_all(
    api: Portal,
    run: dict[str, Any],
    *,
    attempt: int | None,
    tail: int | None,
    is_json: bool,
) -> None:
    read = workers.last_lines(api, run, attempt=attempt, tail=tail)
    if is_json:
        return words.printed([one for _, one in read])
    for before, one in read:
        for line in one["lines"]:
            click.echo(f"{before} {line['text']}")
    return None
