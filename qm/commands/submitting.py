"""Submitting a run, anew or once more."""

from __future__ import annotations

from typing import Any

import click

from qm import choosing, completing, following, words
from qm.calls import Portal, key_of, option_named
from qm.commands.finding import run_of
from qm.commands.options import one_run, portal, refuse_both, waiting
from qm.endings import Code, Ended
from qm.option_types import WholeNumber, lower_case
from qm.sending import sent


@click.command()
@click.option(
    "--template",
    metavar="SLUG",
    default="",
    shell_complete=completing.templates,
    help="Chosen by --nodes otherwise.",
)
@click.option(
    "--image",
    metavar="IMAGE",
    required=True,
    help="What the pods run, with its tag; without one it is the latest.",
)
@click.option("--gpus", type=WholeNumber(min=0), metavar="N", help="GPUs on each node.")
@click.option(
    "--nodes",
    type=WholeNumber(min=1),
    metavar="N",
    help="Nodes, which start together.",
)
@click.option(
    "--flavor",
    metavar="NAME",
    default="",
    callback=lower_case,
    shell_complete=completing.flavors,
    help="The kind of GPU as qm places names it, such as a100-80gb.",
)
@click.option(
    "--place",
    metavar="CLUSTER/NAMESPACE",
    default="",
    shell_complete=completing.places,
    help="Where, of several places.",
)
@click.option(
    "--team",
    metavar="SLUG",
    default="",
    shell_complete=completing.teams,
    help="The team whose place it is.",
)
@click.option(
    "--name",
    "title",
    metavar="NAME",
    default="",
    help="What the run is called; after its program otherwise.",
)
@click.option(
    "--time",
    "limit",
    metavar="TIME",
    default="",
    help="It is stopped after so long: 4h, 90m, 1h30m, 2d.",
)
@click.option(
    "--script",
    type=click.Path(),
    default="",
    help="A file of this machine, which goes along.",
)
@click.option(
    "--git",
    metavar="URL",
    default="",
    help="A Git address whose files the program finds.",
)
@click.option(
    "--git-secret",
    metavar="SECRET",
    default="",
    help="The Secret in the namespace with the username and password of a private --git.",
)
@click.option(
    "--ref",
    metavar="REVISION",
    default="main",
    show_default=True,
    help="The branch, tag or commit of --git.",
)
@click.option(
    "--claim",
    "claims",
    multiple=True,
    metavar="NAME:PATH",
    help="A volume, with :ro behind it for reading alone; repeatable.",
)
@click.option(
    "--env",
    "variables",
    multiple=True,
    metavar="NAME=VALUE",
    help="A variable, no secret; repeatable.",
)
@click.option(
    "--secret",
    "secrets",
    multiple=True,
    metavar="NAME=SECRET:KEY",
    help="A variable with the value of a key of a Secret in the namespace; repeatable.",
)
@click.option(
    "--set",
    "parameters",
    multiple=True,
    metavar="NAME=VALUE",
    help="Any parameter of the template; repeatable.",
)
@click.option(
    "--priority", metavar="NAME", default="", help="One of the place's priorities."
)
@click.option(
    "--within",
    metavar="LEVEL",
    default="",
    help="All nodes in one domain of this level, as in rack.",
)
@click.option(
    "--near",
    metavar="LEVEL",
    default="",
    help="The same where there is room, and anywhere otherwise.",
)
@click.option(
    "--checkpoint",
    metavar="PATH",
    default="",
    help="Where the program keeps checkpoints, on a volume.",
)
@click.option(
    "--after",
    "before",
    metavar="RUN",
    default="",
    shell_complete=completing.runs,
    help="It begins when this run has finished, and is skipped if that does not finish.",
)
@click.option(
    "--dry-run",
    is_flag=True,
    help="Price, whether it waits, and what stands in its way; nothing is submitted.",
)
@click.option(
    "--manifest",
    is_flag=True,
    help="What would be created on the cluster, as a JSON list.",
)
@click.option(
    "--key",
    default="",
    metavar="KEY",
    help="What is sent twice with one key is one run.",
)
@waiting
@click.argument("program", nargs=-1)
def train(
    program: tuple[str, ...],
    before: str,
    wait: bool,
    follow: bool,
    is_json: bool,
    **given: Any,
) -> None:
    """Submit a run. PROGRAM and its arguments stand behind --, and follow the script where there is one."""
    refuse_both(follow, is_json)
    api, key = portal(), key_of(given["key"])
    body = choosing.submission(
        given,
        program,
        places=api.get("places/")["results"],
        templates=api.get("templates/")["results"],
    )
    if before:
        body["after"] = run_of(api, before)["id"]
    if given["dry_run"] or given["manifest"]:
        return _preview(
            api,
            "runs/preview/",
            body,
            key,
            asked=body,
            is_json=is_json,
            manifest=given["manifest"],
        )
    return _started(
        api,
        _submitted(api, "runs/", body, key),
        wait=wait,
        follow=follow,
        is_json=is_json,
    )


@click.command()
@one_run
@click.option(
    "--from-checkpoint",
    "resumes",
    is_flag=True,
    help="Its program goes on from the last checkpoint of RUN, which it finds in QM_RESUME_FROM.",
)
@click.option(
    "--template",
    metavar="SLUG",
    default="",
    shell_complete=completing.templates,
    help="Another template, which keeps the values that it has a parameter for.",
)
@click.option("--image", metavar="IMAGE", default="", help="Another image.")
@click.option(
    "--set",
    "parameters",
    multiple=True,
    metavar="NAME=VALUE",
    help="Another value of a parameter of its template; repeatable.",
)
@click.option(
    "--env",
    "variables",
    multiple=True,
    metavar="NAME=VALUE",
    help="Another variable, no secret; repeatable.",
)
@click.option(
    "--secret",
    "secrets",
    multiple=True,
    metavar="NAME=SECRET:KEY",
    help="All variables from Secrets, in the place of those before; repeatable.",
)
@click.option(
    "--time",
    "limit",
    metavar="TIME",
    default="",
    help="Another time limit: 4h, 90m, 1h30m, 2d.",
)
@click.option(
    "--gpus", type=WholeNumber(min=0), metavar="N", help="Other GPUs on each node."
)
@click.option(
    "--nodes", type=WholeNumber(min=1), metavar="N", help="Another number of nodes."
)
@click.option(
    "--flavor",
    metavar="NAME",
    default="",
    callback=lower_case,
    shell_complete=completing.flavors,
    help="Another kind of GPU.",
)
@click.option("--priority", metavar="NAME", default="", help="Another priority.")
@click.option("--name", "title", metavar="NAME", default="", help="Another name.")
@click.option(
    "--after",
    "before",
    metavar="RUN",
    default=None,
    shell_complete=completing.runs,
    help="It begins when this run has finished, and with '' at once. Left out, it waits for what the earlier one did "
    "while that goes on.",
)
@click.option(
    "--dry-run",
    is_flag=True,
    help="What changes, its price, whether it waits, and what stands in its way.",
)
@click.option(
    "--key",
    default="",
    metavar="KEY",
    help="What is sent twice with one key is one run.",
)
@waiting
def again(
    run: str,
    resumes: bool,
    before: str | None,
    key: str,
    dry_run: bool,
    wait: bool,
    follow: bool,
    is_json: bool,
    **given: Any,
) -> None:
    """Submit a run once more. It gets a new name, and begins anew unless told otherwise.

    It may have other values than RUN had: another image, more time, other GPUs, another learning rate.
    """
    refuse_both(follow, is_json)
    api, key = portal(), key_of(key)
    earlier = run_of(api, run)
    verb = "resume" if resumes else "again"
    changes = _changes(api, earlier, given)
    if before is not None:
        changes["after"] = run_of(api, before)["id"] if before else None
    body = changes or None
    where = f"runs/{earlier['id']}/{verb}/"
    if dry_run:
        asked = {
            "template": earlier["template"],
            "flavor": earlier["flavor"],
            **(body or {}),
        }
        return _preview(
            api, f"{where}preview/", body, key, asked=asked, is_json=is_json
        )
    return _started(
        api,
        _submitted(api, where, body, key),
        wait=wait,
        follow=follow,
        is_json=is_json,
    )


def _changes(api: Portal, run: dict[str, Any], given: dict[str, Any]) -> dict[str, Any]:
    """What differs from a run, by the types and limits of its template; where none is needed, nothing is read."""
    asks = (given[each] for each in ("template", "parameters", "limit", "nodes"))
    if not any(asks):
        return choosing.changes(given, template={"parameters": []})
    templates = api.get("templates/")["results"]
    slug = given["template"] or run["template"]
    template = next((one for one in templates if one["slug"] == slug), None)
    if template is None and given["template"]:
        raise choosing.no_template(slug, templates)
    if template is None:
        # It is offered no more, and the portal says so.
        return choosing.changes(given, template={"parameters": []})
    found = choosing.changes(given, template=template)
    values = found.get("values", {})
    if not choosing.takes_nodes(values, template):
        _refuse_nodes(api, run, values["nodes"], template, templates)
    return found


def _refuse_nodes(
    api: Portal,
    run: dict[str, Any],
    nodes: object,
    template: dict[str, Any],
    templates: list[dict[str, Any]],
) -> None:
    """Raises Ended for several nodes of a template of one; whoever may start nothing there is refused by the portal."""
    places, sent = api.get("places/")["results"], run["submission"]
    for place in places:
        if place["tenancy"] == run["tenancy"]:
            needs_files = sent["script"] or sent["repository"] or sent["claims"]
            raise choosing.one_node_alone(
                nodes, template, templates, place, needs_files=bool(needs_files)
            )


def _preview(
    api: Portal,
    path: str,
    body: dict[str, Any] | None,
    key: str,
    *,
    asked: dict[str, Any],
    is_json: bool,
    manifest: bool = False,
) -> None:
    plan = api.post(path, body, key=key)
    if is_json or (manifest and plan["is_possible"]):
        words.printed(plan if is_json else plan["manifests"])
    elif plan["is_possible"]:
        borrowed = f", {plan['borrows']} of them borrowed" if plan["borrows"] else ""
        at_limit = (
            f", {plan['usd_at_limit']} USD until its time limit"
            if plan["usd_at_limit"]
            else ""
        )
        rows = [
            ("run", plan["name"]),
            ("template", asked["template"]),
            ("pods", plan["pods"]),
            (
                "GPUs",
                f"{plan['gpus']} × {asked['flavor']}{borrowed}"
                if plan["gpus"]
                else "none",
            ),
            ("time limit", words.duration(plan["limit_seconds"])),
            ("price", f"{float(plan['usd_per_hour']):.2f} USD an hour{at_limit}"),
            ("start", words.start(plan["start"])),
        ]
        if ends := plan["too_few_held"]:
            rows.append(("GPUs end", ends["sentence"]))
        rows += [
            (
                one["label"],
                f"{one['before'] or 'nothing'} becomes {one['after'] or 'nothing'}",
            )
            # Only of a run that is submitted again.
            for one in plan.get("differences", ())
        ]
        if better := plan["recommended"]:
            rows.append(("memory", better["words"]))
        if spot := plan["spot"]:
            rows.append(
                ("on spot" if spot["is_chosen"] else "on spot instead", spot["words"])
            )
        click.echo(words.facts(rows))
        for name in plan["unknown_volumes"]:
            words.note(
                f"The portal keeps no volume {name} there: without a claim of that name the run never begins."
            )
        words.note(
            f"Nothing is submitted. To submit it under this name: --key {key} instead of --dry-run."
        )
    if not plan["is_possible"]:
        sentences = [
            f"{option_named(one['field'])}: {one['text']}" for one in plan["problems"]
        ]
        asks = dict.fromkeys(one["ask"] for one in plan["problems"] if one["ask"])
        sentences += [f"The form for them, filled in: {api.url}{each}" for each in asks]
        raise Ended("\n".join(sentences), Code.REFUSED)


def _submitted(api: Portal, path: str, body: object, key: str) -> dict[str, Any]:
    """A new run; whoever does not hear of it is told how to ask again without starting a second one."""
    advice = f"It may have been submitted. To send it again without a second run, add: --key {key}"
    return sent(api, path, body, key=key, advice=advice)


def _started(
    api: Portal, run: dict[str, Any], *, wait: bool, follow: bool, is_json: bool
) -> None:
    """Tell of a run that was submitted, and stay with it as long as was asked for."""
    words.note(f"Submitted: {run['name']} ({run['id']}).")
    over: Any = None
    if follow:
        over = following.follow(api, run, following.Wanted(), tail=None)
    elif wait:
        over = following.wait(api, run)
    if is_json:
        words.printed(over or run)
    elif over is None:
        click.echo(run["name"])
    if over is not None:
        following.ended(over)
