"""The templates that come with the product: what each is for, what it asks, and what a cluster needs for it. Pure."""

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import NamedTuple

from provisioning.desired.variables import (
    refused_secret,
    refused_secrets,
    refused_variables,
)
from workloads.templates import gangs, jobs, kubeflow, serving
from workloads.templates.parameters import (
    Parameter,
    Type,
    refused_script,
    refused_source,
)
from workloads.templates.pods import Manifest
from workloads.templates.run import Claim, Run

KUEUE, VOLCANO = "kueue", "volcano"
# What starts a Python script, as torchrun does, and what starts or is one of a shell; by its name, wherever it lies.
STARTERS = re.compile(r"torchrun|python[0-9.]*|accelerate|deepspeed")
SHELLS = frozenset({"sh", "bash", "dash", "ksh", "zsh", "env"})
SHELL_SCRIPTS = (".sh", ".bash")
ANY_CAPACITY, SPOT, ON_DEMAND = "any", "spot", "on_demand"
Render = Callable[[Run], list[Manifest]]


class Misfit(NamedTuple):
    """Why a run does not go with a template, and the input at fault."""

    field: str
    text: str


@dataclass(frozen=True, kw_only=True)
class Template:
    """A template. `kind` is written as `Kind.group/version`, `integration` as Kueue's configuration names it.

    Its `shape` is the shipped template whose objects it makes. Variables and volumes go along with every run, the
    repository with one that brings no program of its own; `gpu_memory` (GB) is what one GPU needs, 0 for any.
    """

    slug: str
    title: str
    help: str
    kind: str
    render: Render
    parameters: tuple[Parameter, ...]
    integration: str = ""
    queueing: str = KUEUE
    # Whether its pods can have a pasted script, a source from Git and volumes.
    accepts_files: bool = True
    # Whether its pods compute together, so that it matters how close they are.
    is_gathered: bool = False
    # The field of its object's spec that says how close, where the templates of its pods do not; later releases
    # have it.
    topology_field: str = ""
    shape: str = ""
    # Which version of the platform team's own this is; 0 for one as it came with the product.
    version: int = 0
    variables: Mapping[str, str] = field(default_factory=dict)
    # What it sets itself for its pods to find each other: a run that sets it, too, would be overruled without a word.
    own_variables: Collection[str] = ()
    claims: tuple[Claim, ...] = ()
    repository: tuple[str, str] | None = None
    priority: str = ""
    capacity: str = ANY_CAPACITY
    gpu_memory: int = 0

    def refused(self, run: Run) -> "Misfit | None":
        """Why a run does not go with this template, where the parameters alone do not tell; None when it does."""
        if not self.accepts_files and (run.script or run.repository or run.claims):
            text = f"{self.title} takes its program and data from the image: no script, Git address or volume."
            return Misfit(_field_of_files(run), text)
        found = (
            Misfit("variables", refused_variables([*run.variables])),
            Misfit("variables", self._refused_own([*run.variables])),
            Misfit("secrets", self._refused_secrets(run)),
            Misfit("program", _refused_launch(run)),
            Misfit(_field_of_files(run), _refused_files(run)),
            Misfit("git_secret", _refused_git_secret(run)),
            Misfit("checkpoint", _refused_checkpoint(run)),
        )
        return next((one for one in found if one.text), None)

    def _refused_secrets(self, run: Run) -> str:
        names = [one.variable for one in run.secrets]
        refused = refused_secrets(run.secrets, beside=run.variables)
        return refused or self._refused_own(names)

    def _refused_own(self, names: Sequence[str]) -> str:
        taken = [name for name in names if name in self.own_variables]
        if not taken:
            return ""
        return f"{taken[0]} is set by the template: the pods of a run find each other by it."


@dataclass(frozen=True)
class Abilities:
    """What a cluster can run: kinds that it serves, what Kueue looks after (None: not known), whose queues it has."""

    kinds: Collection[str]
    integrations: Collection[str] | None = None
    queueing: str = KUEUE
    # Of each kind the fields of the templates' `topology_field` that it has there.
    fields: Mapping[str, Collection[str]] = field(default_factory=dict)
    # Nobody has asked the cluster yet: what is not among the kinds may be there all the same.
    is_known: bool = True


def lacking(template: Template, cluster: Abilities) -> str:
    """What a cluster lacks for a template, in one sentence; empty when it can be offered there."""
    if template.queueing != cluster.queueing:
        theirs, needed = cluster.queueing.title(), template.queueing.title()
        return f"The queues of this cluster are {theirs}'s, and this template is for {needed}."
    if template.kind not in cluster.kinds:
        name, _, group = template.kind.partition(".")
        if not cluster.is_known:
            return f"The portal has not asked the cluster yet whether it knows {name}: look again in a moment."
        return f"The cluster does not know {name} ({group}); a platform lead installs its controller."
    known = cluster.integrations
    if template.integration and known is not None and template.integration not in known:
        return f"Kueue does not look after {template.integration} here; a platform lead adds it to its integrations."
    return ""


def without_topology(template: Template, cluster: Abilities) -> str:
    """Why a template cannot keep its pods close to each other on a cluster, in one sentence; empty when it can."""
    if not template.is_gathered:
        return f"{template.title} has no pods that compute together."
    wanted = template.topology_field
    if not wanted or wanted in cluster.fields.get(template.kind, ()):
        return ""
    name, _, version = template.kind.partition(".")
    return (
        f"The portal finds no field {wanted} in a {name} of this cluster, which would say how close its nodes are: "
        f"a platform lead updates the controller of {version.partition('/')[0]}."
    )


def _refused_checkpoint(run: Run) -> str:
    if not run.checkpoint:
        return ""
    kept = PurePosixPath(run.checkpoint)
    if any(kept.is_relative_to(one.path) for one in run.claims if not one.is_read_only):
        return ""
    return f"Checkpoints in {run.checkpoint} would be lost with the pod: mount a volume there that can be written."


def _refused_launch(run: Run) -> str:
    """Why torchrun cannot start what is given: it takes a Python script, neither what would start one nor a shell."""
    first = run.program[0] if run.program else ""
    name = PurePosixPath(first).name
    if run.launcher != "torchrun":
        return ""
    if STARTERS.fullmatch(name):
        return f"The launcher torchrun starts a script itself: leave {first} out, or choose the launcher none."
    if name in SHELLS:
        return (
            f"The launcher torchrun starts a Python script, and {first} is none: begin with the script, such as "
            "train.py, or choose the launcher none to run the program as it stands."
        )
    if name.endswith(SHELL_SCRIPTS):
        return (
            f"The launcher torchrun starts a Python script, and {first} is one of a shell: begin with the Python "
            f"script, such as train.py, or choose the launcher none and write bash {first}."
        )
    return ""


def _field_of_files(run: Run) -> str:
    if run.script is not None:
        return "script"
    return "repository" if run.repository is not None else "claims"


def _refused_files(run: Run) -> str:
    if run.script is not None and run.repository is not None:
        return "A run has a pasted script or a Git address, not both."
    if run.script is not None:
        return refused_script(run.script.text)
    source = run.repository
    if source is None:
        return ""
    return refused_source(source.url, source.revision)


def _refused_git_secret(run: Run) -> str:
    secret = run.repository.secret if run.repository is not None else ""
    return refused_secret(secret) if secret else ""


def _count(
    name: str, title: str, help: str, default: int, minimum: int, maximum: int
) -> Parameter:
    return Parameter(
        name=name,
        type=Type.COUNT,
        title=title,
        help=help,
        default=default,
        minimum=minimum,
        maximum=maximum,
    )


IMAGE = Parameter(
    name="image",
    type=Type.IMAGE,
    title="Image",
    help="What the pods run, with its tag.",
)
PROGRAM = Parameter(
    name="program",
    type=Type.WORDS,
    title="Program",
    help="The program and its arguments, word by word. No shell reads them.",
)
LAUNCHER = Parameter(
    name="launcher",
    type=Type.CHOICE,
    title="Launcher",
    help="torchrun starts the script once for each GPU: the program is the script itself; none runs it as it is.",
    default="torchrun",
    choices=("torchrun", "none"),
)
GPUS = _count("gpus", "GPUs on each node", "How many GPUs each pod gets.", 1, 0, 16)
CPUS = _count("cpus", "CPUs on each node", "How many CPUs each pod gets.", 8, 1, 256)
MEMORY = _count(
    "memory", "Memory on each node (GiB)", "How much memory each pod gets.", 64, 1, 4096
)
NODES = _count(
    "nodes", "Nodes", "How many nodes take part; all start together.", 2, 2, 256
)
# On one node it is the run that other clusters have a template of its own for.
ONE_OR_MORE = _count(
    "nodes",
    "Nodes",
    "How many nodes take part; several start together or not at all.",
    2,
    1,
    256,
)
MINUTES = _count(
    "minutes",
    "Time limit (minutes)",
    "The run is stopped after it has run so long.",
    1440,
    5,
    43_200,
)
GRACE = _count(
    "grace",
    "Grace (seconds)",
    "How long a stopped run may write its last checkpoint.",
    120,
    0,
    3600,
)
RESTARTS = _count(
    "restarts",
    "Restarts",
    "How often all pods start anew after one has failed.",
    0,
    0,
    20,
)
CHECKPOINT = Parameter(
    name="checkpoint",
    type=Type.PATH,
    title="Checkpoints",
    help="Where checkpoints are kept, on a volume; each run makes a folder of its own there, named in QM_CHECKPOINTS.",
    is_needed=False,
)
CHECKPOINT_MINUTES = _count(
    "checkpoint_minutes",
    "Minutes between checkpoints",
    "How often the program writes one; 0 for never. It finds this in QM_CHECKPOINT_MINUTES.",
    0,
    0,
    1440,
)
COMMON = (
    IMAGE,
    PROGRAM,
    GPUS,
    CPUS,
    MEMORY,
    MINUTES,
    GRACE,
    CHECKPOINT,
    CHECKPOINT_MINUTES,
)
GANG = (*COMMON, LAUNCHER, NODES, RESTARTS)
AT_ONCE = _count(
    "at_once", "At once", "How many run at the same time, if there is room.", 4, 1, 500
)

TEMPLATES: Sequence[Template] = (
    Template(
        slug="single-node",
        title="Single node",
        help="Fine-tune or train on the GPUs of one node.",
        kind="Job.batch/v1",
        integration="batch/job",
        render=jobs.single_node,
        parameters=(*COMMON, LAUNCHER),
    ),
    Template(
        slug="pytorch",
        title="PyTorch on several nodes",
        help="Distributed PyTorch; all nodes start together.",
        kind="JobSet.jobset.x-k8s.io/v1alpha2",
        integration="jobset.x-k8s.io/jobset",
        render=gangs.jobset,
        is_gathered=True,
        own_variables=gangs.RENDEZVOUS,
        parameters=GANG,
    ),
    Template(
        slug="trainjob",
        title="PyTorch by Kubeflow Trainer",
        help="Distributed PyTorch by a TrainJob; the program comes with the image.",
        kind="TrainJob.trainer.kubeflow.org/v1alpha1",
        integration="trainer.kubeflow.org/trainjob",
        render=kubeflow.trainjob,
        is_gathered=True,
        topology_field="runtimePatches",
        parameters=(IMAGE, PROGRAM, LAUNCHER, NODES, GPUS, CPUS, MEMORY, MINUTES),
        accepts_files=False,
    ),
    Template(
        slug="mpi",
        title="MPI",
        help="A program that mpirun starts on several nodes.",
        kind="MPIJob.kubeflow.org/v2beta1",
        integration="kubeflow.org/mpijob",
        render=kubeflow.mpijob,
        is_gathered=True,
        parameters=(*COMMON, NODES, RESTARTS),
    ),
    Template(
        slug="sweep",
        title="Sweep",
        help="Many trials of one program, each with its number.",
        kind="Job.batch/v1",
        integration="batch/job",
        render=jobs.sweep,
        parameters=(
            *COMMON,
            _count("trials", "Trials", "How many trials there are.", 10, 1, 10_000),
            AT_ONCE,
        ),
    ),
    Template(
        slug="batch",
        title="Batch inference",
        help="One program over many shards of an input.",
        kind="Job.batch/v1",
        integration="batch/job",
        render=jobs.batch,
        parameters=(
            *COMMON,
            _count("shards", "Shards", "How many parts the input has.", 10, 1, 10_000),
            AT_ONCE,
        ),
    ),
    Template(
        slug="nccl",
        title="NCCL check",
        help="Measures how fast the GPUs of some nodes talk to each other.",
        kind="MPIJob.kubeflow.org/v2beta1",
        integration="kubeflow.org/mpijob",
        render=kubeflow.nccl_check,
        is_gathered=True,
        parameters=(IMAGE, GPUS, CPUS, MEMORY, NODES, MINUTES),
        accepts_files=False,
    ),
    Template(
        slug="volcano",
        title="Gang on Volcano",
        help="One node, or several that start together, on clusters with Volcano's queues.",
        kind="Job.batch.volcano.sh/v1alpha1",
        queueing=VOLCANO,
        render=gangs.volcano,
        is_gathered=True,
        own_variables=gangs.RENDEZVOUS,
        topology_field="networkTopology.highestTierName",
        parameters=(*COMMON, LAUNCHER, ONE_OR_MORE, RESTARTS),
    ),
    Template(
        slug="serving",
        title="Inference on several nodes",
        help="A model that is too large for one node, served until it is stopped.",
        kind="LeaderWorkerSet.leaderworkerset.x-k8s.io/v1",
        integration="leaderworkerset.x-k8s.io/leaderworkerset",
        render=serving.leader_worker,
        is_gathered=True,
        parameters=(
            IMAGE,
            PROGRAM,
            _count(
                "nodes",
                "Nodes of a replica",
                "Over how many nodes one copy of the model goes.",
                2,
                1,
                64,
            ),
            _count(
                "replicas", "Replicas", "How many copies of the model serve.", 1, 1, 100
            ),
            GPUS,
            CPUS,
            MEMORY,
            GRACE,
        ),
    ),
)
BY_SLUG: Mapping[str, Template] = {one.slug: one for one in TEMPLATES}
