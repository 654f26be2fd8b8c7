"""The pod of a run: one container whose requests equal its limits, with its volumes, variables and place. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import urlsplit

from provisioning.desired.first_job import QUEUE_LABEL
from provisioning.desired.objects import DOMAIN, cost_labels
from provisioning.desired.quantities import gibibytes
from provisioning.desired.variables import taken_from
from workloads.templates.run import SCRIPTS, SOURCE, Repository, Run

Manifest = dict[str, Any]
RUN_LABEL = f"{DOMAIN}/run"
PRIORITY_LABEL = "kueue.x-k8s.io/priority-class"
STARTED_BY = f"{DOMAIN}/started-by"
PORT = 29_500
MAIN = "main"
CHECKPOINTS = "QM_CHECKPOINTS"
# Half of the memory may be shared between the workers of a pod, which data loaders and NCCL want.
SHARED_PART = 2
RESTRICTED = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
# Its last line stands in the pod's status, where the portal reads why there is no source.
FETCH = (
    'git init -q "$1" && cd "$1" && git fetch -q --depth 1 -- "$2" "$3" && git checkout -q --detach FETCH_HEAD '
    '|| { echo "Not fetched: $3 of $2" >&2; exit 1; }'
)


# Git asks it for name and password; neither stands in a command, an address or a file.
CREDENTIALS = """!f() { printf 'username=%s\\npassword=%s\\n' "${GIT_USERNAME:-git}" "$GIT_PASSWORD"; }; f"""


def metadata(run: Run, *, is_queued: bool = True) -> Manifest:
    """Name, namespace and labels: the queue, the priority, whose it is and what its cost is put under."""
    queued = (
        {QUEUE_LABEL: run.where.queue, PRIORITY_LABEL: run.where.priority}
        if is_queued
        else {}
    )
    head = {
        "name": run.name,
        "namespace": run.where.namespace,
        "labels": {**run_labels(run), **queued},
    }
    return head | (
        {"annotations": {STARTED_BY: run.where.started_by}}
        if run.where.started_by
        else {}
    )


def run_labels(run: Run) -> dict[str, str]:
    """Labels by which cost tools and the portal know a run."""
    where = run.where
    return cost_labels(
        team=where.team,
        project=where.project,
        cost_centre=where.cost_centre,
        environment=where.environment,
        run=run.name,
        template=run.template,
    )


def pod_template(
    run: Run,
    command: Sequence[str],
    *,
    own: Sequence[Manifest] = (),
    gpus: int | None = None,
) -> Manifest:
    """The template of a pod with one container; `own` are variables of the template itself."""
    head: Manifest = {"labels": run_labels(run)}
    if run.topology is not None:
        head["annotations"] = run.topology.annotation
    return {"metadata": head, "spec": pod_spec(run, command, own=own, gpus=gpus)}


def pod_spec(
    run: Run,
    command: Sequence[str],
    *,
    own: Sequence[Manifest] = (),
    gpus: int | None = None,
) -> Manifest:
    """What one pod runs; it never gets a token of Kubernetes."""
    spec: Manifest = {
        "restartPolicy": "Never",
        "automountServiceAccountToken": False,
        "terminationGracePeriodSeconds": run.grace,
        "securityContext": {"seccompProfile": {"type": "RuntimeDefault"}},
        "containers": [
            _container(run, command, own, run.gpus if gpus is None else gpus)
        ],
        "volumes": _volumes(run),
        **scheduling(run),
    }
    if run.repository is not None:
        spec["initContainers"] = [_fetch(run.repository)]
    return spec


def scheduling(run: Run) -> Manifest:
    """What brings a pod onto the nodes of its flavor: their labels choose it, and their taints are tolerated."""
    kind = run.where.kind
    found: Manifest = {}
    if kind is not None and kind.node_labels:
        found["nodeSelector"] = dict(kind.node_labels)
    if kind is not None and kind.taints:
        found["tolerations"] = kind.tolerations
    return found


def amounts(run: Run, gpus: int) -> dict[str, str]:
    """What one pod takes; Kueue and the quota count requests, and nothing may take more than it asked for."""
    resource = run.where.kind.resource if run.where.kind else "nvidia.com/gpu"
    return {
        "cpu": str(run.cpus),
        "memory": gibibytes(run.memory),
        **({resource: str(gpus)} if gpus else {}),
    }


def script_map(run: Run) -> list[Manifest]:
    """The ConfigMap of a pasted script; none where the program comes with the image or from Git."""
    if run.script is None:
        return []
    return [
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {
                "name": f"{run.name}-script",
                "namespace": run.where.namespace,
                "labels": run_labels(run),
            },
            "immutable": True,
            "data": {run.script.file: run.script.text},
        }
    ]


def literal(word: str) -> str:
    """A word as it was given: Kubernetes would put a variable's value where it reads `$(NAME)`."""
    return word.replace("$(", "$$(")


def checkpoints_in(manifests: Any) -> str:
    """The folder that the pods of manifests were told to keep checkpoints in; empty where they were told none."""
    if isinstance(manifests, Mapping):
        if manifests.get("name") == CHECKPOINTS:
            return str(manifests.get("value", "")).replace("$$(", "$(")
        manifests = manifests.values()
    elif not isinstance(manifests, list | tuple):
        return ""
    return next((found for one in manifests if (found := checkpoints_in(one))), "")


def volume_of(manifests: Any, folder: str) -> tuple[str, str] | None:
    """The claim that holds a folder which pods of manifests write, and where it is mounted; None where it is lost."""
    for spec in _pod_specs(manifests):
        claims = {
            one["name"]: one["persistentVolumeClaim"]["claimName"]
            for one in spec.get("volumes", ())
            if "persistentVolumeClaim" in one
        }
        for container in spec["containers"]:
            for mount in container.get("volumeMounts", ()):
                holds = PurePosixPath(folder).is_relative_to(mount["mountPath"])
                if holds and mount["name"] in claims and not mount.get("readOnly"):
                    return claims[mount["name"]], mount["mountPath"]
    return None


def priority_of(manifests: Sequence[Manifest]) -> str:
    """The WorkloadPriorityClass that the objects of a run name; empty where they name none."""
    labels = (one["metadata"].get("labels", {}) for one in manifests)
    return next(
        (str(one[PRIORITY_LABEL]) for one in labels if PRIORITY_LABEL in one), ""
    )


def _pod_specs(manifests: Any) -> Iterator[Manifest]:
    if isinstance(manifests, Mapping):
        if "containers" in manifests:
            yield dict(manifests)
            return
        manifests = manifests.values()
    elif not isinstance(manifests, list | tuple):
        return
    for one in manifests:
        yield from _pod_specs(one)


def program(run: Run) -> list[str]:
    """The program as it was given."""
    return [literal(word) for word in run.program]


def torchrun(run: Run, *, rank: str, address: str) -> list[str]:
    """The program, started on every node by torchrun where that launcher was chosen."""
    if run.launcher != "torchrun":
        return program(run)
    across = ["--standalone", "--nnodes=1"]
    if run.nodes > 1:
        across = [
            f"--nnodes={run.nodes}",
            f"--node-rank={rank}",
            f"--master-addr={address}",
            f"--master-port={PORT}",
        ]
    return ["torchrun", *across, f"--nproc-per-node={max(run.gpus, 1)}", *program(run)]


def variables(run: Run) -> list[Manifest]:
    """The cluster's variables, the portal's and the run's own, each name once: the last one given counts."""
    given = {**run.where.variables, **run.variables, "QM_RUN": run.name}
    if run.checkpoints:
        given[CHECKPOINTS] = run.checkpoints
    if run.resume_from:
        given["QM_RESUME_FROM"] = run.resume_from
    if minutes := run.values.get("checkpoint_minutes"):
        given["QM_CHECKPOINT_MINUTES"] = str(minutes)
    plain = [
        {"name": name, "value": literal(value)} for name, value in sorted(given.items())
    ]
    return [
        *plain,
        *(_from_secret(one.variable, one.secret, one.key) for one in run.secrets),
    ]


def _from_secret(
    variable: str, secret: str, key: str, *, is_needed: bool = True
) -> Manifest:
    source = taken_from(secret, key, is_needed=is_needed)
    return {"name": variable, "valueFrom": source}


def _container(
    run: Run, command: Sequence[str], own: Sequence[Manifest], gpus: int
) -> Manifest:
    resources = amounts(run, gpus)
    mounts: list[Manifest] = [{"name": "shared", "mountPath": "/dev/shm"}]  # noqa: S108  # nosec B108
    mounts += [
        {
            "name": f"claim-{index}",
            "mountPath": one.path,
            **({"readOnly": True} if one.is_read_only else {}),
        }
        for index, one in enumerate(run.claims)
    ]
    if run.script is not None:
        mounts.append({"name": "script", "mountPath": SCRIPTS, "readOnly": True})
    if run.repository is not None:
        mounts.append({"name": "source", "mountPath": SOURCE})
    return {
        "name": MAIN,
        "image": run.image,
        "command": list(command),
        **_directory(run),
        "env": [*variables(run), *own],
        "resources": {"requests": resources, "limits": dict(resources)},
        "securityContext": RESTRICTED,
        # Its last lines then tell why it failed, also where its log can be read no more.
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": mounts,
    }


def _directory(run: Run) -> Manifest:
    """The program's names are those of the source or of the script, where there is one."""
    if run.repository is not None:
        return {"workingDir": SOURCE}
    return {"workingDir": SCRIPTS} if run.script is not None else {}


def _volumes(run: Run) -> list[Manifest]:
    size = gibibytes(max(1, run.memory // SHARED_PART))
    found: list[Manifest] = [
        {"name": "shared", "emptyDir": {"medium": "Memory", "sizeLimit": size}}
    ]
    for index, one in enumerate(run.claims):
        claim: Manifest = {
            "claimName": one.name,
            **({"readOnly": True} if one.is_read_only else {}),
        }
        found.append({"name": f"claim-{index}", "persistentVolumeClaim": claim})
    if run.script is not None:
        found.append({"name": "script", "configMap": {"name": f"{run.name}-script"}})
    if run.repository is not None:
        found.append({"name": "source", "emptyDir": {}})
    return found


def _fetch(source: Repository) -> Manifest:
    """What fetches the source; address and revision are arguments, never part of the shell's text."""
    resources = {"cpu": "1", "memory": "1Gi"}
    words = [SOURCE, source.url, source.revision]
    return {
        "name": "source",
        "image": source.image,
        "command": ["sh", "-ec", FETCH, "fetch", *(literal(word) for word in words)],
        **({"env": _git_credentials(source)} if source.secret else {}),
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "resources": {"requests": resources, "limits": dict(resources)},
        "securityContext": RESTRICTED,
        "volumeMounts": [{"name": "source", "mountPath": SOURCE}],
    }


def _git_credentials(source: Repository) -> list[Manifest]:
    """What has git use the name and the password of a Secret, for the host of the address alone."""
    host = f"https://{urlsplit(source.url).netloc}"
    # A host that sends git elsewhere would have it hand on the password there.
    settings = {
        f"credential.{host}.helper": CREDENTIALS,
        "http.followRedirects": "false",
    }
    pairs = [
        {"name": f"GIT_CONFIG_{word}_{number}", "value": text}
        for number, pair in enumerate(settings.items())
        for word, text in zip(("KEY", "VALUE"), pair, strict=True)
    ]
    return [
        _from_secret("GIT_USERNAME", source.secret, "username", is_needed=False),
        _from_secret("GIT_PASSWORD", source.secret, "password"),
        {"name": "GIT_CONFIG_COUNT", "value": str(len(settings))},
        *pairs,
    ]
