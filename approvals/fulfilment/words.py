"""What a person has to do for a task, in words from the spec."""

from approvals.models import Request, Task
from catalogue.offerings import Offering
from catalogue.spec import (
    ClusterSpec,
    EndpointSpec,
    NamespaceSpec,
    NotebookSpec,
    OpenAiSpec,
    ReservationSpec,
    Spec,
    VolumeSpec,
)
from ui.amounts import gpus

Fact = tuple[str, str]


def sentence(task: Task) -> str:
    """What to do in one sentence."""
    if task.kind == Task.Kind.SET_APART:
        return _apart(task)
    request, spec = task.asked, task.asked.asked
    place = f" in {request.place}" if request.place else ""
    if task.kind == Task.Kind.TAKE_DOWN:
        return f"Its time is over: ask {request.requester.name}, then take {_thing(request.of, spec)}{place} down."
    many, here = request.approved_count or request.count, f"in the team’s namespace{place}"
    match spec:
        case NotebookSpec():
            return f"Start a notebook server with {gpus(many)} and the image {spec.image} {here}."
        case EndpointSpec():
            replicas = "1 replica" if many == 1 else f"{many} replicas"
            return f"Serve {spec.model} with {replicas} of {gpus(spec.gpus_per_replica)} {here}."
        case VolumeSpec():
            return f"Make a volume {spec.name} of {many:,} GiB ({spec.access}) {here}."
        case OpenAiSpec():
            return f"Deploy {spec.model} with {many:,}k tokens a minute{place}, for the team’s group."
        case ReservationSpec():
            return f"Reserve {many} × {spec.vm_size}{place} in Azure until the end date."
        case ClusterSpec():
            return f"Build {many} × {spec.vm_size}{place} for {spec.purpose}, then add it under Clusters."
        case _:
            return f"Carry out {request.given_name}{place}."


def what_to_do(task: Task) -> list[Fact]:
    """The task as lines: what, for whom, where, with which group, until when."""
    if task.kind == Task.Kind.SET_APART:
        return [("To do", sentence(task)), ("Team", task.team.name), ("Place", task.place.cluster.title)]
    request = task.asked
    lines = [("To do", sentence(task)), ("Team", request.team.name), ("Offering", request.of.name)]
    if request.place:
        lines.append(("Place", request.place))
    lines += [(label_of(request.of, name), str(value)) for name, value in said(request)]
    return [*lines, ("Until", f"{request.until:%d %b %Y, %H:%M} UTC")]


def said(request: Request) -> list[tuple[str, object]]:
    """The fields of a request's spec, without its place; as many units as were granted."""
    spec = request.asked.fewer(request.approved_count or request.count)
    return [(name, value) for name, value in spec.items() if name not in ("cluster", "region")]


def lost(request: Request) -> str:
    """What is gone when a request is let go of, for the question before it."""
    task = next((task for task in request.tasks.all() if task.kind == Task.Kind.SET_UP), None)
    if task is not None and not task.is_over:
        return "Nobody sets it up any more; it has cost nothing."
    with_it = {VolumeSpec: ", with everything on it", NamespaceSpec: ", with everything in it"}
    spec = request.asked
    what = f"{_thing(request.of, spec)} down{with_it.get(type(spec), '; nothing answers there any more')}"
    return f"A platform lead asks {request.requester.name}, then takes {what}. What it will not cost is free again."


def label_of(offering: Offering, field: str) -> str:
    """What a field of an offering is called."""
    return offering.spec.model_fields[field].title or field


def _apart(task: Task) -> str:
    team, place = task.team, task.place
    return (
        f"Make an Azure subscription for {team.name} alone, billed to {team.cost_centre}, with identities, network and "
        f"quota of its own; then add its cluster under Clusters, for {team.name} alone. "
        f"Until then the team works on in {place.cluster.title}."
    )


def _thing(offering: Offering, spec: Spec) -> str:
    match spec:
        case VolumeSpec():
            return f"the volume {spec.name}"
        case NamespaceSpec():
            return f"the namespace of {spec.project}"
        case EndpointSpec() | OpenAiSpec():
            return f"the endpoint for {spec.model}"
        case _:
            return f"the {offering.name.lower()}"
