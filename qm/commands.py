"""The commands of `qm`."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from typing import Any, TypeVar
from urllib.parse import quote

import click
from click.shell_completion import get_completion_class

from qm import (
    __version__,
    choosing,
    completing,
    configuration,
    following,
    words,
    workers,
)
from qm.calls import Portal, key_of, option_named
from qm.configuration import Access
from qm.endings import MEANINGS, Code, Ended, in_order
from qm.option_types import WholeNumber, lower_case

F = TypeVar("F", bound=Callable[..., Any])
SHELLS = ("bash", "zsh", "fish")
STATES = (
    "submitted",
    "waiting",
    "starting",
    "running",
    "finished",
    "failed",
    "stopped",
    "refused",
    "gone",
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
USUAL_ROWS, USUAL_LINES = 25, 1_000
# So many runs are looked through for one by the beginning of its name, the newest first.
LOOKED_THROUGH = 1_000
# As Kubernetes names objects; the portal would refuse to look for anything else.
WHOLE_NAME = re.compile(r"[a-z][a-z0-9-]{0,62}")


class Commands(click.Group):
    """The group; an interruption and a closed pipe have the exit codes that shells give them."""

    def make_context(self, *given: Any, **named: Any) -> click.Context:
        """Read what was typed, and tell what --help and --version tell."""
        with in_order():
            return super().make_context(*given, **named)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command that was named."""
        with in_order():
            return super().invoke(ctx)


def as_json(command: F) -> F:
    """`--json`."""
    return click.option(
        "--json", "is_json", is_flag=True, help="The portal's JSON instead of words."
    )(command)


def one_run(command: F) -> F:
    """The argument RUN."""
    return click.argument("run", shell_complete=completing.runs)(command)


def waiting(command: F) -> F:
    """`--wait`, `--follow` and `--json`, of what starts a run."""
    command = as_json(command)
    command = click.option(
        "-f", "--follow", is_flag=True, help="Print its log until it is over."
    )(command)
    return click.option("--wait", is_flag=True, help="Return when it is over.")(command)


def portal() -> Portal:
    """The portal that one is signed in to."""
    return Portal(configuration.access())


@click.group(
    cls=Commands,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="\b\nExit codes:\n"
    + "\n".join(f"  {code:<4d} {said}" for code, said in MEANINGS.items()),
)
@click.version_option(__version__, prog_name="qm")
def qm() -> None:
    """Training runs on the GPUs that your team holds."""


@qm.command()
@click.option(
    "--url",
    metavar="URL",
    required=True,
    envvar="QM_URL",
    help="The portal's address, without a path, as in https://gpus.example.com.",
)
@click.option(
    "--token-stdin",
    is_flag=True,
    help="Read the token from standard input instead of asking.",
)
def login(url: str, token_stdin: bool) -> None:
    """Sign in. It takes a personal token, which you make in the portal under Tokens."""
    url = configuration.checked(url)
    secret = (
        sys.stdin.readline()
        if token_stdin
        else click.prompt("Token", hide_input=True, err=True)
    )
    found = Access(url, configuration.cleaned(secret))
    me = Portal(found).get("me/")
    configuration.store(found)
    teams = ", ".join(one["name"] for one in me["teams"]) or "none yet"
    words.note(f"Signed in to {url} as {me['name']}. Teams: {teams}.")


@qm.command()
def logout() -> None:
    """Forget the token. It stays good until it expires: end it in the portal under Tokens."""
    words.note(
        "The token is forgotten." if configuration.forget() else "There was no token."
    )


@qm.command()
@as_json
def places(is_json: bool) -> None:
    """Where you may start runs. Each place has the GPUs held there, and its templates."""
    found = portal().get("places/")
    if is_json:
        return words.printed(found)
    for one in found["results"]:
        missing = [each for each in one["templates"] if each["missing"]]
        click.echo(words.place_name(one))
        rows = [
            (
                "team",
                f"{one['team']['name']} ({one['team']['slug']}), project {one['project']}",
            ),
            ("GPUs", "; ".join(map(words.pool, one["flavors"])) or "none held"),
            (
                "topology",
                ", ".join(
                    dict.fromkeys(
                        each for kind in one["flavors"] for each in kind["levels"]
                    )
                ),
            ),
            (
                "templates",
                ", ".join(
                    each["slug"] for each in one["templates"] if not each["missing"]
                ),
            ),
            ("priorities", ", ".join(one["priorities"])),
            ("volumes", ", ".join(one["volumes"])),
            (
                "runs",
                "not by the portal: this cluster follows Git"
                if one["follows_git"]
                else "",
            ),
            *((f"not {each['slug']}", each["missing"]) for each in missing),
        ]
        click.echo(words.facts(rows) + "\n")
    if not found["results"]:
        has_team = bool(portal().get("me/")["teams"])
        words.note(
            "Nowhere yet: your team needs a namespace on a cluster, and you ask for one in the portal."
            if has_team
            else "Nowhere yet: you are in no team. Bring one on board in the portal, or join the group of one."
        )
    return None


@qm.command()
@click.argument("slug", required=False, default="", shell_complete=completing.templates)
@as_json
def templates(slug: str, is_json: bool) -> None:
    """The templates. With SLUG, what one of them asks for."""
    found = portal().get("templates/")
    if not slug:
        lines = [(one["slug"], one["title"], one["help"]) for one in found["results"]]
        return (
            words.printed(found)
            if is_json
            else click.echo(words.table(("template", "title", "what for"), lines))
        )
    one = next((one for one in found["results"] if one["slug"] == slug), None)
    if one is None:
        raise choosing.no_template(slug, found["results"])
    if is_json:
        return words.printed(one)
    files = "" if one["accepts_files"] else " Its program and data come with the image."
    rows = [
        (
            option_named(each["name"]),
            words.default(each),
            words.limits(each),
            f"{each['title']}: {each['help']}",
        )
        for each in one["parameters"]
    ]
    click.echo(f"{one['title']} ({one['kind']}): {one['help']}{files}\n")
    return click.echo(
        words.table(("option", "unless given", "takes", "what it is"), rows)
    )


@qm.command()
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
    program: tuple[str, ...], wait: bool, follow: bool, is_json: bool, **given: Any
) -> None:
    """Submit a run. PROGRAM and its arguments stand behind --, and follow the script where there is one."""
    _refuse_both(follow, is_json)
    api, key = portal(), key_of(given["key"])
    body = choosing.submission(
        given,
        program,
        places=api.get("places/")["results"],
        templates=api.get("templates/")["results"],
    )
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


@qm.command("list")
@click.option(
    "--team",
    metavar="SLUG",
    shell_complete=completing.teams,
    help="Of this team alone.",
)
@click.option("--state", type=click.Choice(STATES), help="In this state alone.")
@click.option("--mine", is_flag=True, help="One's own alone.")
@click.option("--all", "with_over", is_flag=True, help="Those that are over, too.")
@click.option(
    "--limit",
    type=WholeNumber(min=1),
    metavar="N",
    default=USUAL_ROWS,
    show_default=True,
    help="So many.",
)
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
        _refuse_unknown_team(api, team)
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


@qm.command()
@one_run
@as_json
def show(run: str, is_json: bool) -> None:
    """Everything about one run. RUN is its number, its name, or how its name begins, here as everywhere."""
    found = _found(portal(), run)
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
            "goes on from" if found.get("is_resumed") else "same as",
            found.get("again_of"),
        ),
        ("checkpoints", found.get("checkpoints")),
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
        ("GPU use", words.busy(found.get("gpu_use"))),
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


@qm.command()
@one_run
@as_json
def why(run: str, is_json: bool) -> None:
    """Why a run is where it is. Since when, its place in the line, when it starts, and what you can do."""
    found = _found(portal(), run)
    return words.printed(found["why"]) if is_json else click.echo(words.why(found))


@qm.command()
@one_run
@click.option("--wait", is_flag=True, help="Return when it is over.")
@as_json
def stop(run: str, wait: bool, is_json: bool) -> None:
    """End a run. It has its grace for a last checkpoint, then its GPUs are free."""
    api = portal()
    where, was_over = f"runs/{_found(api, run)['id']}/", False
    try:
        found = api.post(f"{where}stop/")
    except Ended as refused:
        # Whoever waits for its end has it.
        was_over = wait and refused.problem == RUN_IS_OVER
        if not was_over:
            raise
        found = api.get(where)
    if wait:
        found = following.wait(api, found)
    if is_json:
        return words.printed(found)
    if was_over:
        return words.note(f"{found['name']} was over already: {found['state']}.")
    return words.note(
        f"{found['name']}: "
        + (f"{found['state']}." if found["is_over"] else "it is being stopped.")
    )


@qm.command()
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
    before = _found(api, run)
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


@qm.command()
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
    _refuse_both(follow, is_json)
    api, key = portal(), key_of(key)
    earlier = _found(api, run)
    verb = "resume" if resumes else "again"
    body = _changes(api, earlier, given) or None
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


@qm.command()
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
    _refuse_both(follow, is_json)
    if follow and attempt is not None:
        raise click.UsageError("--follow goes not with --attempt: no more comes of it.")
    if all_workers and (pod or worker is not None):
        raise click.UsageError("--all-workers goes with neither --pod nor --worker.")
    api, wanted = portal(), following.Wanted(pod, worker)
    found = _found(api, run)
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


@qm.command()
@one_run
@as_json
def wait(run: str, is_json: bool) -> None:
    """Return when a run is over. The exit code says whether it finished."""
    api = portal()
    over = following.wait(api, _found(api, run))
    if is_json:
        words.printed(over)
    following.ended(over)


@qm.command()
@click.argument("shell", type=click.Choice(SHELLS))
def completion(shell: str) -> None:
    """What a shell needs to complete names. As in: eval "$(qm completion bash)"."""
    kind = get_completion_class(shell)
    assert kind is not None  # noqa: S101 - click knows each of them
    click.echo(kind(qm, {}, "qm", "_QM_COMPLETE").source())


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


def _found(api: Portal, word: str) -> dict[str, Any]:
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
            ("start", words.start(plan.get("start"))),
        ]
        if ends := plan.get("too_few_held"):
            rows.append(("GPUs end", ends["sentence"]))
        rows += [
            (
                one["label"],
                f"{one['before'] or 'nothing'} becomes {one['after'] or 'nothing'}",
            )
            for one in plan.get("differences", ())
        ]
        if better := plan.get("recommended"):
            rows.append(("memory", better["words"]))
        if spot := plan.get("spot"):
            rows.append(
                ("on spot" if spot["is_chosen"] else "on spot instead", spot["words"])
            )
        click.echo(words.facts(rows))
        for name in plan.get("unknown_volumes", ()):
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
        asks = dict.fromkeys(one["ask"] for one in plan["problems"] if one.get("ask"))
        sentences += [f"The form for them, filled in: {api.url}{each}" for each in asks]
        raise Ended("\n".join(sentences), Code.REFUSED)


def _submitted(api: Portal, path: str, body: object, key: str) -> dict[str, Any]:
    """A new run; whoever does not hear of it is told how to ask again without starting a second one."""
    advice = f"It may have been submitted. To send it again without a second run, add: --key {key}"
    try:
        return dict(api.post(path, body, key=key))
    except KeyboardInterrupt:
        raise Ended(f"\n{advice}", Code.INTERRUPTED) from None
    except Ended as ended:
        if not ended.again:
            raise
        raise Ended(f"{ended.message}\n{advice}", Code(ended.exit_code)) from None


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


def _new_limit(text: str, run: dict[str, Any]) -> int:
    """Minutes of another time limit; with a + before it, of so much more than the run has."""
    asked = choosing.minutes(text.removeprefix("+"), of="TIME")
    has = (run["limit_seconds"] or 0) // 60
    return has + asked if text.startswith("+") else asked


def _refuse_unknown_team(api: Portal, slug: str) -> None:
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


def _refuse_both(follow: bool, is_json: bool) -> None:
    if follow and is_json:
        raise click.UsageError("--follow does not go with --json.")
