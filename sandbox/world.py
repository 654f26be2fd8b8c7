"""The sample world as data: people, groups and clusters."""

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sandbox import azure_world
from sandbox.azure_world import AzureSpec

TENANT_ID = "11111111-1111-4111-8111-111111111111"
CLIENT_ID = "22222222-2222-4222-8222-222222222222"
GIB = 1024


@dataclass(frozen=True)
class Person:
    """Somebody who can sign in; `groups` are direct memberships by object id."""

    oid: str
    name: str
    mail: str
    title: str
    roles: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    manager: str | None = None
    enabled: bool = True


@dataclass(frozen=True)
class Group:
    """A security group; `groups` are the groups nested directly inside it."""

    oid: str
    name: str
    description: str = ""
    groups: tuple[str, ...] = ()


@dataclass(frozen=True)
class NodeGroup:
    """Nodes that are all alike; `gpus` is per node, memory in MiB; a node group with GPUs is tainted.

    With `most` an autoscaler keeps between `nodes` and `most` of them. Spot nodes have the label and taint that AKS
    gives them.
    """

    name: str
    nodes: int
    gpus: int = 0
    accelerator: str = ""
    instance_type: str = "Standard_D16s_v5"
    cpu: int = 16
    memory_mib: int = 64 * GIB
    most: int = 0
    spot: bool = False


@dataclass(frozen=True)
class ClusterSpec:
    """A cluster by name and what it is made of."""

    name: str
    region: str
    node_groups: tuple[NodeGroup, ...]
    # Whether its network is Cilium, with policies by DNS name.
    cilium: bool = False
    # Whose its queues are: "kueue" or "volcano".
    queueing: str = "kueue"
    # Of its nodes with GPUs, as GPU Feature Discovery tells them; without a driver it does not run there.
    driver: str = "570.86.15"
    cuda: str = "12.8"


@dataclass(frozen=True)
class World:
    """Everything the sandbox starts with."""

    people: tuple[Person, ...]
    groups: tuple[Group, ...]
    clusters: tuple[ClusterSpec, ...]
    azure: AzureSpec | None = None
    tenant_id: str = TENANT_ID
    client_id: str = CLIENT_ID
    app_roles: tuple[str, ...] = field(
        default=(
            "DataScientist",
            "TeamLead",
            "PlatformLead",
            "EngineeringLeadership",
            "Auditor",
        )
    )


def person_id(number: int) -> str:
    """Return the object id of a sample person."""
    return f"00000000-0000-4000-8000-{number:012d}"


def group_id(number: int) -> str:
    """Return the object id of a sample group."""
    return f"00000000-0000-4000-9000-{number:012d}"


def role_id(number: int) -> str:
    """Return the id of an app role, counted from 1 in the world's order."""
    return f"00000000-0000-4000-a000-{number:012d}"


def archive_id(number: int) -> str:
    """Return the object id of one of the many groups that make a token overflow."""
    return f"00000000-0000-4000-9001-{number:012d}"


def load(path: Path) -> World:
    """Read a world from JSON with the keys of the dataclasses above; raise ValueError on unknown keys."""
    raw = json.loads(path.read_text(encoding="utf-8"))
    try:
        return World(
            people=tuple(Person(**_tuples(row)) for row in raw.pop("people")),
            groups=tuple(Group(**_tuples(row)) for row in raw.pop("groups")),
            clusters=tuple(_cluster(row) for row in raw.pop("clusters", [])),
            azure=AzureSpec.of(raw.pop("azure")) if "azure" in raw else None,
            **_tuples(raw),
        )
    except (KeyError, TypeError) as error:
        raise ValueError(f"{path}: {error}") from error


def _cluster(row: dict[str, Any]) -> ClusterSpec:
    groups = tuple(NodeGroup(**group) for group in row.pop("node_groups"))
    return ClusterSpec(node_groups=groups, **row)


def _tuples(row: dict[str, Any]) -> dict[str, Any]:
    return {
        key: tuple(value) if isinstance(value, list) else value
        for key, value in row.items()
    }


def sample() -> World:
    """Return the world of the demo and of the tests."""
    return World(
        people=_people(),
        groups=_groups(),
        clusters=_clusters(),
        azure=azure_world.sample(),
    )


ARCHIVES = 205


def _person(number: int, name: str, title: str, **more: Any) -> Person:
    first = name.partition(" ")[0].lower()
    manager = more.pop("manager", None)
    return Person(
        oid=person_id(number),
        name=name,
        mail=f"{first}@example.com",
        title=title,
        roles=tuple(more.pop("roles", ())),
        groups=tuple(group_id(group) for group in more.pop("groups", ()))
        + more.pop("archives", ()),
        manager=person_id(manager) if manager else None,
        **more,
    )


def _people() -> tuple[Person, ...]:
    scientist = ("DataScientist",)
    archives = tuple(archive_id(number) for number in range(1, ARCHIVES + 1))
    return (
        _person(
            1,
            "Ada Okafor",
            "Data scientist",
            roles=scientist,
            groups=(1, 2, 7, 9, 10),
            manager=3,
        ),
        _person(
            2,
            "Ben Ruiz",
            "Data scientist",
            roles=scientist,
            groups=(1, 8, 9, 11),
            manager=3,
        ),
        _person(
            3,
            "Chloe Lindqvist",
            "Team lead",
            roles=("TeamLead",),
            groups=(1, 9, 11),
            manager=4,
        ),
        _person(
            4,
            "Priya Raman",
            "Platform lead",
            roles=("PlatformLead",),
            groups=(4,),
            manager=6,
        ),
        _person(5, "Marcus Weber", "Platform lead", groups=(4,), manager=6),
        _person(
            6,
            "Elena Petrova",
            "Engineering leadership",
            roles=("EngineeringLeadership",),
            groups=(5,),
        ),
        _person(7, "Sam Achebe", "Auditor", roles=("Auditor",), groups=(6,)),
        _person(
            8,
            "Mallory Finch",
            "Data scientist",
            roles=scientist,
            groups=(3,),
            manager=5,
        ),
        _person(
            9,
            "Noor Haddad",
            "Data scientist",
            roles=scientist,
            groups=(2,),
            archives=archives,
        ),
        _person(
            10,
            "Tom Baker",
            "Data scientist",
            roles=scientist,
            groups=(1,),
            enabled=False,
        ),
    )


def _groups() -> tuple[Group, ...]:
    named = (
        Group(group_id(1), "vision-team", "Computer vision"),
        Group(group_id(2), "nlp-team", "Natural language processing"),
        Group(group_id(3), "speech-team", "Speech recognition"),
        Group(group_id(4), "platform-leads", "Leads of the GPU platform"),
        Group(group_id(5), "engineering-leadership", "Engineering leadership"),
        Group(group_id(6), "auditors", "Internal audit"),
        Group(group_id(7), "robotics-team", "Robotics", (group_id(8),)),
        Group(group_id(8), "robotics-interns", "Interns of the robotics team"),
        Group(group_id(9), "climate-team", "Climate models"),
        Group(group_id(10), "genomics-team", "Genomics"),
        Group(group_id(11), "ads-ranking-team", "Ranking of advertisements"),
    )
    archives = tuple(
        Group(
            archive_id(number),
            f"archive-{number:03d}",
            "Readers of an archived project",
        )
        for number in range(1, ARCHIVES + 1)
    )
    return named + archives


def _clusters() -> tuple[ClusterSpec, ...]:
    return (
        ClusterSpec(
            "training-eastus",
            "eastus",
            (
                NodeGroup("system", 1),
                NodeGroup(
                    "a100",
                    3,
                    8,
                    "nvidia-a100",
                    "Standard_ND96amsr_A100_v4",
                    96,
                    1900 * GIB,
                ),
                NodeGroup(
                    "h100",
                    2,
                    8,
                    "nvidia-h100",
                    "Standard_ND96isr_H100_v5",
                    96,
                    1900 * GIB,
                ),
                NodeGroup(
                    "a100spot",
                    0,
                    8,
                    "nvidia-a100-spot",
                    "Standard_ND96amsr_A100_v4",
                    96,
                    1900 * GIB,
                    most=2,
                    spot=True,
                ),
            ),
            cilium=True,
        ),
        ClusterSpec(
            "dev-eastus",
            "eastus",
            (
                NodeGroup("system", 1),
                NodeGroup(
                    "t4", 4, 4, "nvidia-t4", "Standard_NC64as_T4_v3", 64, 440 * GIB
                ),
                NodeGroup(
                    "a10", 4, 2, "nvidia-a10", "Standard_NV72ads_A10_v5", 72, 880 * GIB
                ),
                NodeGroup(
                    "h100nvl",
                    0,
                    1,
                    "nvidia-h100-nvl",
                    "Standard_NC40ads_H100_v5",
                    40,
                    320 * GIB,
                    most=4,
                ),
            ),
            # One release ahead of production, as a fleet does it to find out early what breaks.
            driver="580.65.06",
            cuda="13.0",
        ),
    )
