"""One run of a template: what is run, where, with how much, and what it is called. Pure."""

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from provisioning.desired.first_job import QUEUE, Kind
from provisioning.desired.variables import SecretVariable
from workloads.templates.parameters import Value

MINUTE, HOUR, DAY = 60, 3_600, 86_400
# JobSet and LeaderWorkerSet add "-worker-0-123" and a suffix of five, and a pod's hostname has 63 characters.
MAX_NAME_LENGTH = 40
TTL_SECONDS = 7 * DAY
FIELDS = (
    "image",
    "program",
    "launcher",
    "nodes",
    "gpus",
    "cpus",
    "memory",
    "grace",
    "checkpoint",
)
SCRIPTS = "/opt/run"
SOURCE = "/opt/source"


@dataclass(frozen=True, kw_only=True)
class Where:
    """Whose run it is and where it goes; `variables` are what the cluster's network wants (NCCL), never secrets."""

    namespace: str
    team: str
    project: str
    cost_centre: str
    environment: str
    kind: Kind | None = None
    queue: str = QUEUE
    priority: str = "exploratory"
    # Who starts it, by the address that the directory knows them by; it stands on the object.
    started_by: str = ""
    variables: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Claim:
    """A claim of the namespace, mounted at a path."""

    name: str
    path: str
    is_read_only: bool = False


@dataclass(frozen=True)
class Script:
    """A pasted script; it goes along as a ConfigMap."""

    file: str
    text: str


@dataclass(frozen=True)
class Topology:
    """How close a run's pods are: all in one domain of a level of the network, or only where that is possible.

    `level` is the node label of a level of Kueue's Topology, or the name of a tier of Volcano's HyperNodes.
    """

    level: str
    is_required: bool = True

    @property
    def annotation(self) -> dict[str, str]:
        """What Kueue reads from the template of a pod."""
        word = "required" if self.is_required else "preferred"
        return {f"kueue.x-k8s.io/podset-{word}-topology": self.level}

    @property
    def network(self) -> dict[str, str]:
        """What Volcano reads from a job; where it is not a must, it takes the closest nodes and reads no tier."""
        return (
            {"mode": "hard", "highestTierName": self.level}
            if self.is_required
            else {"mode": "soft"}
        )


@dataclass(frozen=True)
class Repository:
    """A Git address and revision, fetched before the run begins by `image`, which has git.

    `secret` is the Secret of the namespace with the `username` and the `password` of a private one; empty without.
    """

    url: str
    revision: str
    image: str
    secret: str = ""


@dataclass(frozen=True, kw_only=True)
class Run:
    """What is run. `program` is what follows `torchrun` with that launcher, and the whole command otherwise.

    `gpus`, `cpus` and `memory` (GiB) are of one pod, `seconds` is the time limit, `grace` is what a stopped run has to
    write its last checkpoint. `values` are the template's own parameters.
    """

    name: str
    template: str
    where: Where
    image: str
    program: tuple[str, ...]
    launcher: str = "none"
    script: Script | None = None
    repository: Repository | None = None
    nodes: int = 1
    gpus: int = 1
    cpus: int = 8
    memory: int = 64
    seconds: int = DAY
    grace: int = 2 * MINUTE
    claims: tuple[Claim, ...] = ()
    variables: Mapping[str, str] = field(default_factory=dict)
    secrets: tuple[SecretVariable, ...] = ()
    checkpoint: str = ""
    # The folder of an earlier run's checkpoints, in which this one goes on.
    resume_from: str = ""
    topology: Topology | None = None
    values: Mapping[str, Value] = field(default_factory=dict)

    @property
    def checkpoints(self) -> str:
        """The folder of its checkpoints, of its own unless it goes on from another run's; empty without a place."""
        return self.resume_from or (
            f"{self.checkpoint.rstrip('/')}/{self.name}" if self.checkpoint else ""
        )

    def count(self, name: str, default: int = 1) -> int:
        """A parameter of the template that is a count."""
        value = self.values.get(name, default)
        return value if isinstance(value, int) else default


def run_of(
    template: str, values: Mapping[str, Value], *, name: str, where: Where
) -> Run:
    """A run with the values that a template's parameters were given, once they are checked."""
    given = dict(values)
    minutes = given.pop("minutes", None)
    fields: dict[str, Any] = {each: given.pop(each) for each in FIELDS if each in given}
    if isinstance(minutes, int):
        fields["seconds"] = minutes * MINUTE
    fields.setdefault("program", ())
    return Run(name=name, template=template, where=where, values=given, **fields)


def name_of(title: str, key: str) -> str:
    """A run's name on clusters: readable, and the same for the same submission, so that sending twice makes one."""
    slug = re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-").lstrip("0123456789-")
    end = hashlib.sha256(key.encode()).hexdigest()[:8]
    return f"{slug[: MAX_NAME_LENGTH - len(end) - 1].rstrip('-') or 'run'}-{end}"
