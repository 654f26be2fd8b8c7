"""What a submission comes to: the objects that are created, their GPUs and price, and why it cannot be. Pure."""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any

from fleet.images import refused_image
from provisioning.desired.first_job import Kind
from provisioning.desired.mounts import CLAIM
from provisioning.desired.quantities import CPU, MEMORY
from provisioning.desired.variables import SecretVariable, too_many_secrets
from ui.amounts import capitalized
from web.names import refused_name
from workloads.reasons.words import larger_than, never_more
from workloads.runs.planning.pools import Pool, Recommended, recommended, refused_pool
from workloads.runs.planning.sizes import Room, Sizes, beyond, size_words
from workloads.templates.library import (
    BY_SLUG,
    Abilities,
    Template,
    lacking,
    without_topology,
)
from workloads.templates.parameters import TESTS, Checked, Parameter, Type, Value, check
from workloads.templates.pods import Manifest
from workloads.templates.run import (
    HOUR,
    Claim,
    Repository,
    Run,
    Script,
    Topology,
    Where,
    name_of,
    run_of,
)

MAX_CLAIMS, MAX_VARIABLES, MAX_VALUE = 8, 50, 1_000
SCRIPT_FILE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}", re.ASCII)
GIT_IMAGE = "docker.io/alpine/git:2.49.1"


@dataclass(frozen=True, kw_only=True)
class Submission:
    """What somebody asks for, as a form or a call says it; `flavor` is empty for a run without GPUs."""

    template: str
    title: str
    flavor: str = ""
    priority: str = ""
    values: Mapping[str, object] = field(default_factory=dict)
    script: Mapping[str, str] | None = None
    repository: Mapping[str, str] | None = None
    claims: Sequence[Mapping[str, object]] = ()
    variables: Mapping[str, str] = field(default_factory=dict)
    # {"variable": …, "secret": …, "key": …}: variables whose values stand in Secrets of the namespace.
    secrets: Sequence[Mapping[str, str]] = ()
    # The folder of an earlier run's checkpoints; nobody types it, going on from that run fills it in.
    resume_from: str = ""
    # {"level": …, "required": …}: how close its pods are, by a level of the flavor's topology.
    topology: Mapping[str, object] | None = None
    # The number of a run of the team that has to finish before this one is sent.
    after: int | None = None

    def as_json(self) -> dict[str, Any]:
        """The same for a row, from which it can be submitted again."""
        return {
            "template": self.template,
            "title": self.title,
            "flavor": self.flavor,
            "priority": self.priority,
            "values": {
                name: list(value) if isinstance(value, tuple) else value
                for name, value in self.values.items()
            },
            "script": dict(self.script) if self.script else None,
            "repository": dict(self.repository) if self.repository else None,
            "claims": [dict(one) for one in self.claims],
            "variables": dict(self.variables),
            **(
                {"secrets": [dict(one) for one in self.secrets]} if self.secrets else {}
            ),
            **({"resume_from": self.resume_from} if self.resume_from else {}),
            **({"topology": dict(self.topology)} if self.topology else {}),
            **({"after": self.after} if self.after is not None else {}),
        }


@dataclass(frozen=True, kw_only=True)
class Place:
    """Where a run would go: a team's namespace, what it may have there, and what its cluster can run.

    `cpus` and `memory` (GiB) are what the namespace's pods may have in all, None where nobody knows; `images` are the
    beginnings of allowed images, none for any. `templates` are those that the platform team offers; `offered` are the
    kinds of GPU that the cluster has for the team to ask for, held or not. `volumes` are the claims that the portal
    keeps there, None where nobody looked; members make others. `rooms` are the CPUs and the memory that the team's
    queue has of each flavor, which is less than what its namespace may have.
    """

    cluster: str
    where: Where
    pools: Mapping[str, Pool]
    priorities: Sequence[str]
    abilities: Abilities
    cpus: int | None = None
    memory: int | None = None
    rooms: Mapping[str, Room] = field(default_factory=dict)
    images: Sequence[str] = ()
    templates: Mapping[str, Template] = field(default_factory=lambda: BY_SLUG)
    offered: Mapping[str, Pool] = field(default_factory=dict)
    volumes: Collection[str] | None = None


@dataclass(frozen=True, kw_only=True)
class Problem:
    """Why a submission cannot be sent as it is; `field` is the input at fault. `lacks` are GPUs to ask for."""

    field: str
    text: str
    code: str = "not_possible"
    lacks: int = 0


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What would be created, and what that costs; `problems` is empty when it can be sent."""

    name: str
    manifests: Sequence[Manifest]
    problems: Sequence[Problem]
    gpus: int = 0
    pods: int = 0
    usd_per_hour: Decimal = Decimal(0)
    seconds: int | None = None
    pool: Pool | None = None
    is_gang: bool = False
    checkpoint_minutes: int = 0
    template_version: int = 0
    recommended: Recommended | None = None
    # Claims that it mounts and that are not the portal's: whether they are there, the cluster alone knows.
    unknown_volumes: Sequence[str] = ()
    # CPUs and memory of all its pods, and where in its queue they may come from.
    sizes: Sizes = field(default_factory=dict)
    rooms: Sequence[Room] = ()
    # What the run is called that has to finish first; empty where nothing has to, or it has already.
    after: str = ""

    @property
    def usd_at_limit(self) -> Decimal | None:
        """USD until the time limit; None for what runs until it is stopped."""
        return None if self.seconds is None else self.usd_per_hour * self.seconds / HOUR

    @property
    def borrows(self) -> int:
        """GPUs beyond the guaranteed ones, which it gets only while others leave theirs idle."""
        return max(0, self.gpus - self.pool.gpus) if self.pool is not None else 0


def plan(asked: Submission, place: Place, *, key: str) -> Plan:
    """The run that a submission comes to. The same key gives the same name: what is sent twice is one run."""
    name = name_of(asked.title, key)
    template = place.templates.get(asked.template)
    if template is None:
        known = ", ".join(place.templates)
        return _refused(
            name,
            Problem(
                field="template", text=f"There is no such template. Known are: {known}."
            ),
        )
    if missing := lacking(template, place.abilities):
        return _refused(
            name, Problem(field="template", text=missing, code="not_on_this_cluster")
        )
    found = [*_of_the_frame(asked, place)]
    asked = _filled_in(asked, template, place)
    pool = place.pools.get(asked.flavor)
    free = {one.name for one in template.parameters if not one.is_fixed}
    given: dict[str, object] = {
        k: v for k, v in asked.values.items() if v not in (None, "")
    }
    if not asked.flavor and "gpus" in free:
        given.setdefault("gpus", 0)
    checked = check(template.parameters, given)
    if asked.flavor and pool is None:
        found.append(_not_held(asked, template, place, checked))
    better = recommended(
        asked.flavor,
        place.pools,
        place.offered,
        template,
        are_together=are_together(checked.values),
    )
    if pool is not None and (refused := refused_pool(pool, template)):
        advice = f" {better.advice}" if better is not None else ""
        found.append(
            Problem(
                field="flavor", text=f"{refused}{advice}", code="not_of_the_template"
            )
        )
    found += [Problem(field=each, text=text) for each, text in checked.problems.items()]
    if asked.topology and (
        refused := _refused_topology(asked.topology, template, pool, place)
    ):
        found.append(Problem(field="topology", text=refused, code="no_such_topology"))
    if refused := refused_image(checked.values.get("image"), place.images):
        found.append(Problem(field="image", text=refused, code="image_not_allowed"))
    if found:
        return replace(_refused(name, *found), recommended=better)
    run = _run(
        asked,
        template,
        place,
        checked.values,
        name=name,
        kind=pool.kind if pool else None,
    )
    if misfit := template.refused(run):
        return _refused(name, Problem(field=misfit.field, text=misfit.text))
    return replace(_sized(run, template, place, pool), recommended=better)


def _not_held(
    asked: Submission, template: Template, place: Place, checked: Checked
) -> Problem:
    """A kind of GPU that the team has none of, with how many the run takes, where the cluster offers it."""
    lacks, offered = 0, place.offered.get(asked.flavor)
    if offered is not None and not checked.problems:
        run = _run(asked, template, place, checked.values, name="", kind=None)
        lacks = run.gpus * pods_of(run)
        if offered.is_beyond_cluster(lacks):
            return _beyond_cluster("flavor", lacks, offered, place)
    held = ", ".join(place.pools) or "none"
    return Problem(
        field="flavor",
        text=f"Your team holds no {asked.flavor} on {place.cluster}. It holds: {held}.",
        code="not_held",
        lacks=lacks,
    )


def _beyond_cluster(
    field: str, gpus: int, pool: Pool, place: Place, *, fewer: str = ""
) -> Problem:
    """More GPUs than the cluster has of the kind: asking for them would help nobody; `fewer` says what would fit."""
    said = larger_than(place.cluster, f"{gpus} × {pool.title}", pool.on_cluster or 0)
    instead = f"{capitalized(fewer)}, and it fits." if fewer else ""
    return Problem(
        field=field,
        text=f"{said} {instead or 'It can never fit there.'}",
        code="larger_than_the_cluster",
    )


def are_together(values: Mapping[str, Value]) -> bool:
    """Whether GPUs of a run exchange what they compute: several of one pod, or those of several nodes."""
    counts = [values.get(name, 1) for name in ("gpus", "nodes")]
    return any(isinstance(one, int) and one > 1 for one in counts)


def _sized(run: Run, template: Template, place: Place, pool: Pool | None) -> Plan:
    """The plan of a run whose parameters are right, with what is too large about it."""
    pods = pods_of(run)
    gpus = run.gpus * pods
    has_limit = any(one.name == "minutes" for one in template.parameters)
    return Plan(
        name=run.name,
        manifests=template.render(run),
        problems=[*_too_large(run, template, place, pool, pods)],
        gpus=gpus,
        pods=pods,
        usd_per_hour=pool.usd_per_hour * gpus if pool else Decimal(0),
        seconds=run.seconds if has_limit else None,
        pool=pool,
        is_gang=run.nodes > 1,
        checkpoint_minutes=run.count("checkpoint_minutes", 0),
        template_version=template.version,
        sizes=_sizes(run, pods),
        rooms=_rooms(place, pool),
        unknown_volumes=[
            one.name
            for one in run.claims
            if place.volumes is not None and one.name not in place.volumes
        ],
    )


def pods_of(run: Run) -> int:
    """Pods that run at the same time and take what a node of the run takes."""
    for counted, all_of_them in (("trials", "at_once"), ("shards", "at_once")):
        if counted in run.values:
            return min(run.count(counted), run.count(all_of_them))
    return run.nodes * run.count("replicas")


def _filled_in(asked: Submission, template: Template, place: Place) -> Submission:
    """What was asked with what the template brings along, where the run says nothing else."""
    mounted = {str(one.get("path", "")).rstrip("/") for one in asked.claims}
    usual = [
        {"name": one.name, "path": one.path, "read_only": one.is_read_only}
        for one in template.claims
        if one.path.rstrip("/") not in mounted
    ]
    source = asked.repository
    if asked.script is None and source is None and template.repository is not None:
        url, revision = template.repository
        source = {"url": url, "revision": revision}
    return replace(
        asked,
        priority=asked.priority
        or (template.priority if template.priority in place.priorities else ""),
        claims=(*usual, *asked.claims),
        repository=source,
    )


def _run(
    asked: Submission,
    template: Template,
    place: Place,
    values: Mapping[str, Value],
    *,
    name: str,
    kind: Kind | None,
) -> Run:
    where = replace(
        place.where, kind=kind, priority=asked.priority or place.priorities[-1]
    )
    if not asked.priority and place.where.priority in place.priorities:
        where = replace(where, priority=place.where.priority)
    run = run_of(asked.template, values, name=name, where=where)
    script, source = asked.script, asked.repository
    return replace(
        run,
        script=Script(script["file"], script["text"]) if script else None,
        repository=Repository(
            source["url"], source["revision"], GIT_IMAGE, source.get("secret", "")
        )
        if source
        else None,
        claims=tuple(
            Claim(str(one["name"]), str(one["path"]), bool(one.get("read_only")))
            for one in asked.claims
        ),
        variables={
            **template.variables,
            **_variables_in(template, values),
            **asked.variables,
        },
        secrets=tuple(map(SecretVariable.of, asked.secrets)),
        resume_from=asked.resume_from,
        topology=topology_of(asked.topology),
    )


def topology_of(asked: Mapping[str, object] | None) -> Topology | None:
    """How close a submission wants its pods; None where it does not say."""
    return (
        Topology(str(asked["level"]), bool(asked.get("required", True)))
        if asked
        else None
    )


def _refused_topology(
    asked: Mapping[str, object], template: Template, pool: Pool | None, place: Place
) -> str:
    """Why a run cannot have its pods that close; empty when it can."""
    if absent := without_topology(template, place.abilities):
        return f"{absent} Leave the topology out."
    if pool is None or not pool.levels:
        kind, knows = (
            pool.kind.name if pool else "CPUs",
            place.abilities.queueing.title(),
        )
        return f"The nodes of {kind} on {place.cluster} have no topology that {knows} knows. Leave it out."
    if asked["level"] in pool.levels:
        return ""
    return f"The topology of {pool.kind.name} on {place.cluster} has these levels: {', '.join(pool.levels)}."


def _variables_in(template: Template, values: Mapping[str, Value]) -> dict[str, str]:
    """What the program finds in its environment of the parameters that a template adds to its shape."""
    own = {one.name: one.variable for one in template.parameters if one.variable}
    return {own[name]: _as_text(value) for name, value in values.items() if name in own}


def _as_text(value: Value) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return " ".join(value) if isinstance(value, tuple) else str(value)


def _of_the_frame(asked: Submission, place: Place) -> list[Problem]:
    """What is wrong with what every template has: title, priority, script, volumes, variables, image."""
    found: list[Problem] = []
    if refused := refused_name(asked.title):
        found.append(Problem(field="title", text=refused))
    if asked.priority and asked.priority not in place.priorities:
        known = ", ".join(place.priorities)
        found.append(
            Problem(
                field="priority",
                text=f"Your team may use these priorities here: {known}.",
                code="not_allowed",
            )
        )
    found += _of_files(asked)
    return found


def _of_files(asked: Submission) -> list[Problem]:
    found: list[Problem] = []
    if asked.script is not None and not SCRIPT_FILE.fullmatch(
        asked.script.get("file", "")
    ):
        found.append(
            Problem(
                field="script",
                text="The file of a script has a plain name of at most 100 characters, as in train.py.",
            )
        )
    if len(asked.claims) > MAX_CLAIMS:
        found.append(
            Problem(field="claims", text=f"A run mounts at most {MAX_CLAIMS} volumes.")
        )
    path = Parameter(
        name="path", type=Type.PATH, title="Where a volume is mounted", help=""
    )
    paths = [str(one.get("path", "")) for one in asked.claims]
    for one, where in zip(asked.claims, paths, strict=True):
        if not CLAIM.fullmatch(str(one.get("name", ""))):
            found.append(
                Problem(
                    field="claims",
                    text="A volume is called as its claim in your namespace.",
                )
            )
        elif refused := TESTS[Type.PATH](path, where):
            found.append(Problem(field="claims", text=refused))
    if len({each.rstrip("/") for each in paths}) < len(paths):
        found.append(
            Problem(
                field="claims", text="Two volumes cannot be mounted at the same path."
            )
        )
    if len(asked.variables) > MAX_VARIABLES or any(
        len(str(v)) > MAX_VALUE for v in asked.variables.values()
    ):
        text = f"A run has at most {MAX_VARIABLES} variables of at most {MAX_VALUE} characters."
        found.append(Problem(field="variables", text=text))
    if text := too_many_secrets(len(asked.secrets)):
        found.append(Problem(field="secrets", text=text))
    return found


def _too_large(
    run: Run, template: Template, place: Place, pool: Pool | None, pods: int
) -> list[Problem]:
    """What the team's GPUs, a node or the namespace's quota have no room for."""
    gpus = run.gpus * pods
    if pool is None:
        if gpus:
            return [
                Problem(
                    field="flavor", text="Choose the kind of GPU that the run takes."
                )
            ]
        return _beyond_queue(run, place, pool, pods)
    found: list[Problem] = []
    room = pool.gpus + pool.borrow
    if run.gpus > pool.per_node:
        found.append(
            Problem(
                field="gpus",
                text=_beyond_a_node(run, template, pool),
                code="larger_than_a_node",
            )
        )
    elif pool.is_beyond_cluster(gpus):
        most = min(room, pool.on_cluster or 0)
        fewer = _fewer_at_once(run, template, most)
        found.append(_beyond_cluster("gpus", gpus, pool, place, fewer=fewer))
    elif gpus > room:
        # More GPUs would not make a pod fit that is larger than a node.
        borrowing = f" and may borrow {pool.borrow}" if pool.borrow else ""
        fewer = _fewer_at_once(run, template, room)
        found.append(
            Problem(
                field="gpus",
                text=f"It takes {gpus} × {pool.title}. Your team holds {pool.gpus}{borrowing}: "
                f"ask for {gpus - room} more{f', or {fewer}' if fewer else ''}.",
                code="more_than_held",
                lacks=gpus - room,
            )
        )
    return found or _beyond_queue(run, place, pool, pods)


def _fewer_at_once(run: Run, template: Template, room: int) -> str:
    """How many trials or shards of a run fit at once into so many GPUs; empty where not even one does, or has none."""
    at_once = next((one for one in template.parameters if one.name == "at_once"), None)
    most = room // run.gpus
    if at_once is None or at_once.is_fixed or most < 1:
        return ""
    return f"set {at_once.title} to {most}"


def _beyond_a_node(run: Run, template: Template, pool: Pool) -> str:
    """What to take instead of pods that are larger than a node."""
    has = f"A node has {pool.per_node} × {pool.title}"
    nodes = next((one for one in template.parameters if one.name == "nodes"), None)
    if nodes is None:
        return f"{has}. For more, choose a template of several nodes."
    has += f": take at most {pool.per_node} on each."
    total = run.gpus * run.nodes
    most = run.nodes if nodes.is_fixed else nodes.maximum
    # As few nodes as have that many in equal parts: every pod of a run is of one size.
    enough = (
        count
        for count in range(-(-total // pool.per_node), min(total, most) + 1)
        if total % count == 0
    )
    count = next(enough, None)
    # Nobody is led on to what the cluster does not have either.
    if count is None or pool.is_beyond_cluster(total):
        return has
    return f"{has} {total} in all are {total // count} on each of {count} nodes."


def _sizes(run: Run, pods: int) -> Sizes:
    return {CPU: run.cpus * pods, MEMORY: run.memory * pods}


def _rooms(place: Place, pool: Pool | None) -> list[Room]:
    """Where its CPUs may come from: with GPUs from their own flavor, else from any, as Kueue tolerates every taint."""
    return [
        one
        for name, one in place.rooms.items()
        if pool is None or name == pool.kind.name
    ]


def _beyond_queue(
    run: Run, place: Place, pool: Pool | None, pods: int
) -> list[Problem]:
    """CPUs and memory that the team's queue can never give it, and so would never let it in."""
    wanted = _sizes(run, pods)
    found = [
        Problem(
            field={CPU: "cpus", MEMORY: "memory"}[name],
            text=never_more(size_words(name, wanted[name]), size_words(name, most)),
            code="more_than_the_queue",
        )
        for name, most in beyond(wanted, _rooms(place, pool)).items()
    ]
    return found or _beyond_quota(run, place, pods)


def _beyond_quota(run: Run, place: Place, pods: int) -> list[Problem]:
    """CPUs and memory that the namespace has no room for, however empty it is."""
    found: list[Problem] = []
    for name, each, most, words in (
        ("cpus", run.cpus, place.cpus, "CPUs"),
        ("memory", run.memory, place.memory, "GiB of memory"),
    ):
        if most is not None and each * pods > most:
            text = f"All its pods together take {each * pods} {words}, and your namespace has {most}."
            found.append(Problem(field=name, text=text, code="more_than_the_quota"))
    return found


def _refused(name: str, *problems: Problem) -> Plan:
    return Plan(name=name, manifests=(), problems=problems)
