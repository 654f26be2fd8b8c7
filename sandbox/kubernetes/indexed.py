"""Indexed Jobs: each pod has a number, and a Job is complete when each number has succeeded once. Pure."""

import copy
from collections.abc import Iterable
from typing import Any

from sandbox.kubernetes.causes import items, part
from sandbox.kubernetes.store import Obj

INDEX = "batch.kubernetes.io/job-completion-index"
_FIELD = {"fieldRef": {"apiVersion": "v1", "fieldPath": f"metadata.labels['{INDEX}']"}}
_VARIABLE = {"name": "JOB_COMPLETION_INDEX", "valueFrom": _FIELD}


def is_indexed(job: Obj) -> bool:
    """Whether the pods of a Job have numbers."""
    return (
        job["spec"].get("completionMode") == "Indexed"
        and job["spec"].get("completions") is not None
    )


def index_of(pod: Obj) -> int | None:
    """The number of a pod; None where it has none."""
    text = part(part(dict(pod), "metadata"), "annotations").get(INDEX)
    return int(text) if isinstance(text, str) and text.isdigit() else None


def indexes_of(pods: Iterable[Obj]) -> set[int]:
    """The numbers of pods."""
    return {number for pod in pods if (number := index_of(pod)) is not None}


def parsed(text: str) -> set[int]:
    """The numbers in a text like ``0-2,5``."""
    found: set[int] = set()
    for one in filter(None, text.split(",")):
        first, _, last = one.partition("-")
        found |= set(range(int(first), int(last or first) + 1))
    return found


def compressed(numbers: Iterable[int]) -> str:
    """Numbers as a Job's status has them, ``0-2,5``."""
    runs: list[list[int]] = []
    for number in sorted(numbers):
        if runs and number == runs[-1][-1] + 1:
            runs[-1][1:] = [number]
        else:
            runs.append([number])
    return ",".join("-".join(map(str, run)) for run in runs)


def template_of(job: Obj, number: int) -> dict[str, Any]:
    """The template of a Job for the pod of one number: label, annotation, host name and variable."""
    template = copy.deepcopy(dict(job["spec"]["template"]))
    metadata = template.setdefault("metadata", {})
    for word in ("annotations", "labels"):
        metadata[word] = {**part(metadata, word), INDEX: str(number)}
    template["spec"]["hostname"] = f"{job['metadata']['name']}-{number}"
    for container in [
        *items(template["spec"], "containers"),
        *items(template["spec"], "initContainers"),
    ]:
        container["env"] = [*items(container, "env"), _VARIABLE]
    return template
