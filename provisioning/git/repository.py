"""The files of a repository that Flux or Argo CD follows, from the very manifests that are applied elsewhere. Pure.

`base/` is the same everywhere, `clusters/<name>/cluster/` is what the teams of a cluster share, and each tenancy has
`clusters/<name>/tenancies/<namespace>/`. Only files of ours are changed; what is not ours in their place is refused.
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

from connectors.kubernetes import rendered
from provisioning.desired.objects import MANAGED_BY, TENANCY_LABEL, Manifest
from provisioning.desired.plan import NEVER_PRUNED
from provisioning.desired.spec import CPU_FLAVOR

Changes = dict[str, bytes | None]

INDEX = "kustomization.yaml"
MARK = "# Written by Quartermaster; what is changed here by hand is overwritten."
# As they can be created; everything that is not named comes after.
ORDER = (
    "ResourceFlavor",
    "WorkloadPriorityClass",
    "PriorityClass",
    "Cohort",
    "ClusterQueue",
    "Namespace",
    "ResourceQuota",
    "LimitRange",
    "ServiceAccount",
    "RoleBinding",
    "NetworkPolicy",
    "CiliumNetworkPolicy",
    "LocalQueue",
    "ConfigMap",
    "PersistentVolumeClaim",
)
EVERYWHERE = frozenset({"PriorityClass", "WorkloadPriorityClass"})
SEGMENT = re.compile(r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?")


class PathRefused(ValueError):
    """A name that must not become a path, or a path where something lies that is not ours; the text says which."""


class Files(Protocol):
    """What is in the repository now."""

    def read(self, path: str) -> bytes | None:
        """A file's bytes, None where nothing is; ValueError where something else than a file is."""

    def names(self, folder: str) -> Sequence[str]:
        """The names in a folder, none where nothing is; ValueError where something else than a folder is."""


def tenancy_folder(cluster: str, namespace: str) -> str:
    """Where a tenancy's files lie; raises PathRefused for names that are none."""
    return f"{_tenancies(cluster)}/{_segment(namespace)}"


def tenancy_changes(
    now: Files,
    *,
    cluster: str,
    namespace: str,
    owner: int,
    manifests: Sequence[Manifest],
) -> Changes:
    """What to change so that the repository holds this tenancy; empty when it does, byte by byte.

    Raises PathRefused for what is not ours in our place.
    """
    folder = tenancy_folder(cluster, namespace)
    changes = _folder_changes(now, folder, manifests, owner=owner)
    return changes | _lists(now, cluster, changes, has={folder})


def tenancy_removal(now: Files, *, cluster: str, namespace: str, owner: int) -> Changes:
    """What to change so that the repository holds nothing of this tenancy; for a team that has left, and no other."""
    folder = tenancy_folder(cluster, namespace)
    index = _read(now, f"{folder}/{INDEX}")
    if index is None:
        return {}
    if not _is_marked(index, _note(owner)):
        raise PathRefused(_taken(f"{folder}/{INDEX}"))
    listed = _listed(index)
    changes: Changes = {
        f"{folder}/{name}": None
        for name in _names(now, folder)
        if name in listed or name == INDEX
    }
    return changes | _lists(now, cluster, changes, has=set())


def shared_changes(
    now: Files, *, cluster: str, manifests: Sequence[Manifest]
) -> Changes:
    """What to change so that the repository holds what is the same everywhere, and what a cluster's teams share."""
    everywhere = [one for one in manifests if _is_everywhere(one)]
    own = [one for one in manifests if not _is_everywhere(one)]
    folder = f"{_root(cluster)}/cluster"
    changes = _folder_changes(now, "base", everywhere) | _folder_changes(
        now, folder, own, also=["../../../base"]
    )
    return changes | _lists(now, cluster, changes, has={folder})


def file_name(manifest: Mapping[str, Any]) -> str:
    """The name of an object's file; raises PathRefused for a name that no file of ours has."""
    return f"{_segment(str(manifest['kind']).lower())}-{_segment(str(manifest['metadata']['name']))}.json"


def claim_file(cluster: str, namespace: str, claim: str) -> str:
    """Where the claim of a tenancy's volume lies; it stays there when the volume's time is over."""
    name = file_name({"kind": "PersistentVolumeClaim", "metadata": {"name": claim}})
    return f"{tenancy_folder(cluster, namespace)}/{name}"


def index(resources: Iterable[str], *, note: str = "") -> bytes:
    """A kustomization of these files and folders."""
    lines = [
        MARK,
        *([note] if note else []),
        "apiVersion: kustomize.config.k8s.io/v1beta1",
        "kind: Kustomization",
        "resources:",
        *(f"- {name}" for name in resources),
    ]
    return ("\n".join(lines) + "\n").encode()


def _folder_changes(
    now: Files,
    folder: str,
    manifests: Sequence[Manifest],
    *,
    owner: int | None = None,
    also: Sequence[str] = (),
) -> Changes:
    """Bring one folder of objects in line; what is no longer wanted goes, but never a namespace or a claim."""
    before, note = _read(now, f"{folder}/{INDEX}"), _note(owner)
    if before is not None and not _is_marked(before, note):
        raise PathRefused(_taken(f"{folder}/{INDEX}"))
    listed = _listed(before) if before else set()
    ordered = sorted(
        manifests, key=lambda one: (_rank(str(one["kind"])), file_name(one))
    )
    wanted = {file_name(one): one for one in ordered}
    changes: Changes = {}
    for name, manifest in wanted.items():
        _put(
            now,
            changes,
            f"{folder}/{name}",
            manifest,
            _marks(owner),
            is_listed=name in listed,
        )
    left = {
        name: _parsed(_read(now, f"{folder}/{name}"))
        for name in sorted(listed - set(wanted))
    }
    ours = {name: one for name, one in left.items() if _has_labels(one, _marks(owner))}
    kept = [name for name, one in ours.items() if one.get("kind") in NEVER_PRUNED]
    changes |= {f"{folder}/{name}": None for name in ours if name not in kept}
    text = index([*also, *wanted, *kept], note=note)
    return changes | ({f"{folder}/{INDEX}": text} if text != before else {})


def _put(
    now: Files,
    changes: Changes,
    path: str,
    manifest: Manifest,
    marks: Mapping[str, str],
    *,
    is_listed: bool,
) -> None:
    content, found = rendered(manifest), _read(now, path)
    if found == content:
        return
    # What a bad merge broke is ours if our own list names it; what reads as somebody else's object is not.
    broken = is_listed and not isinstance(_parsed(found), dict)
    if found is not None and not broken and not _has_labels(_parsed(found), marks):
        raise PathRefused(_taken(path))
    changes[path] = content


def _lists(now: Files, cluster: str, changes: Changes, *, has: set[str]) -> Changes:
    """The kustomizations above the folders: of all tenancies that have one, and of the cluster."""
    root, tenancies = _root(cluster), _tenancies(cluster)
    there = {
        f"{tenancies}/{name}"
        for name in _names(now, tenancies)
        if SEGMENT.fullmatch(name)
        and name != INDEX
        and _has_index(now, f"{tenancies}/{name}", changes)
    } | {folder for folder in has if folder.startswith(f"{tenancies}/")}
    found = dict(changes)
    names = sorted(folder.rpartition("/")[2] for folder in there)
    _put_list(now, found, tenancies, names)
    parts = (
        [f"{root}/cluster"]
        if f"{root}/cluster" in has or _has_index(now, f"{root}/cluster", changes)
        else []
    )
    parts += [tenancies] if names else []
    _put_list(now, found, root, [part.rpartition("/")[2] for part in parts])
    return found


def _put_list(now: Files, changes: Changes, folder: str, names: Sequence[str]) -> None:
    path = f"{folder}/{INDEX}"
    before, text = _read(now, path), index(names) if names else None
    if before == text:
        return
    if before is not None and not _is_marked(before, ""):
        raise PathRefused(_taken(path))
    changes[path] = text


def _has_index(now: Files, folder: str, changes: Changes) -> bool:
    """Whether a folder of ours is there after the changes."""
    path = f"{folder}/{INDEX}"
    if path in changes:
        return changes[path] is not None
    try:
        found = now.read(path)
    except ValueError:
        return False
    return found is not None and _is_marked(found, "")


def _is_marked(text: bytes, note: str) -> bool:
    lines = text.decode("utf-8", "replace").splitlines()
    return lines[:1] == [MARK] and (not note or lines[1:2] == [note])


def _listed(text: bytes) -> set[str]:
    """The plain names in a kustomization's list."""
    lines = text.decode("utf-8", "replace").splitlines()
    names = {line[2:] for line in lines if line.startswith("- ")}
    return {
        name for name in names if SEGMENT.fullmatch(name) and name.endswith(".json")
    }


def _parsed(text: bytes | None) -> Any:
    try:
        return json.loads(text or b"null")
    except ValueError:
        return None


def _has_labels(found: Any, marks: Mapping[str, str]) -> bool:
    metadata = found.get("metadata") if isinstance(found, dict) else None
    labels = metadata.get("labels") if isinstance(metadata, dict) else None
    return isinstance(labels, dict) and all(
        labels.get(name) == value for name, value in marks.items()
    )


def _marks(owner: int | None) -> dict[str, str]:
    """The labels by which a file is known to be ours."""
    return MANAGED_BY | ({} if owner is None else {TENANCY_LABEL: str(owner)})


def _note(owner: int | None) -> str:
    return "" if owner is None else f"# Tenancy {owner}"


def _is_everywhere(manifest: Manifest) -> bool:
    return manifest["kind"] in EVERYWHERE or manifest["metadata"]["name"] == CPU_FLAVOR


def _rank(kind: str) -> int:
    return ORDER.index(kind) if kind in ORDER else len(ORDER)


def _root(cluster: str) -> str:
    return f"clusters/{_segment(cluster)}"


def _tenancies(cluster: str) -> str:
    return f"{_root(cluster)}/tenancies"


def _segment(name: str) -> str:
    if not SEGMENT.fullmatch(name) or ".." in name:
        raise PathRefused(f"“{name[:60]}” is no name for a file.")
    return name


def _read(now: Files, path: str) -> bytes | None:
    try:
        return now.read(path)
    except ValueError as error:
        raise PathRefused(_taken(path)) from error


def _names(now: Files, folder: str) -> Sequence[str]:
    try:
        return now.names(folder)
    except ValueError as error:
        raise PathRefused(_taken(folder)) from error


def _taken(path: str) -> str:
    return f"{path} exists in the repository and is not ours; it was not touched."
