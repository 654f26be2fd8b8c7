"""Runs by Kubeflow: TrainJob of Trainer v2 with its runtime, MPIJob v2beta1, and the NCCL check. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from provisioning.desired.first_job import Kind
from provisioning.desired.objects import DOMAIN
from workloads.templates.pods import (
    Manifest,
    amounts,
    metadata,
    pod_template,
    program,
    script_map,
    variables,
)
from workloads.templates.run import TTL_SECONDS, Run

# The pods of a runtime that train, and whose patches of it the portal's are: each manager has one of its own.
NODE, MANAGER = "node", f"{DOMAIN}/runs"
TRAINER, MPI = "trainer.kubeflow.org/v1alpha1", "kubeflow.org/v2beta1"
# The user of the images of mpi-operator, whose SSH server needs no rights of root.
MPI_USER, MPI_HOME = 1_000, "/home/mpiuser"
NCCL_TEST = ("all_reduce_perf", "-b", "8M", "-e", "8G", "-f", "2", "-g", "1")


def runtime_name(kind: Kind | None) -> str:
    """The ClusterTrainingRuntime of a flavor, which the platform team installs."""
    return f"qm-torch-{kind.name}" if kind is not None else "qm-torch"


def runtime(kind: Kind | None, *, image: str) -> Manifest:
    """The runtime that TrainJobs of a flavor refer to: it brings their pods onto the flavor's nodes.

    A TrainJob itself does not say that: a runtime does in every release of Trainer, and Kueue writes the same there.
    """
    pod: dict[str, Any] = {"containers": [{"name": NODE, "image": image}]}
    if kind is not None and kind.node_labels:
        pod["nodeSelector"] = dict(kind.node_labels)
    if kind is not None and kind.taints:
        pod["tolerations"] = kind.tolerations
    step = {
        "metadata": {
            "labels": {"trainer.kubeflow.org/trainjob-ancestor-step": "trainer"}
        },
        "spec": {"template": {"spec": pod}},
    }
    return {
        "apiVersion": TRAINER,
        "kind": "ClusterTrainingRuntime",
        "metadata": {
            "name": runtime_name(kind),
            "labels": {"trainer.kubeflow.org/framework": "torch"},
        },
        "spec": {
            "mlPolicy": {"numNodes": 1, "torch": {}},
            "template": {
                "spec": {"replicatedJobs": [{"name": NODE, "template": step}]}
            },
        },
    }


def trainjob(run: Run) -> list[Manifest]:
    """PyTorch on several nodes by Trainer, which starts torchrun itself; the program comes with the image."""
    resources = amounts(run, run.gpus)
    trainer = {
        "numNodes": run.nodes,
        "image": run.image,
        "command": ["torchrun", *program(run)]
        if run.launcher == "torchrun"
        else program(run),
        "env": variables(run),
        "resourcesPerNode": {"requests": resources, "limits": dict(resources)},
    }
    name = runtime_name(run.where.kind)
    spec = {
        "suspend": True,
        "activeDeadlineSeconds": run.seconds,
        "runtimeRef": {
            "apiGroup": "trainer.kubeflow.org",
            "kind": "ClusterTrainingRuntime",
            "name": name,
        },
        "trainer": trainer,
    }
    if run.topology is not None:
        spec["runtimePatches"] = [_pod_annotations(run.topology.annotation)]
    return [
        {
            "apiVersion": TRAINER,
            "kind": "TrainJob",
            "metadata": metadata(run),
            "spec": spec,
        }
    ]


def _pod_annotations(annotations: Mapping[str, str]) -> Manifest:
    """A patch of the runtime that annotates its pods; Kueue reads their template with all patches put in."""
    pods = {
        "name": NODE,
        "template": {"spec": {"template": {"metadata": {"annotations": annotations}}}},
    }
    return {
        "manager": MANAGER,
        "trainingRuntimeSpec": {"template": {"spec": {"replicatedJobs": [pods]}}},
    }


def mpijob(run: Run) -> list[Manifest]:
    """MPI on several nodes: a launcher without GPUs that starts the program on the workers by SSH."""
    return _mpijob(run, program(run))


def nccl_check(run: Run) -> list[Manifest]:
    """How fast the GPUs of some nodes talk to each other, by the all-reduce of nccl-tests."""
    return _mpijob(run, NCCL_TEST)


def _mpijob(run: Run, words: Sequence[str]) -> list[Manifest]:
    ranks = str(run.nodes * max(run.gpus, 1))
    launch = [
        "mpirun",
        "-np",
        ranks,
        "--bind-to",
        "none",
        *_forwarded_variables(run),
        *words,
    ]
    # A launcher takes no GPU and exchanges nothing: it may be anywhere.
    launcher = pod_template(replace(run, topology=None), launch, gpus=0)
    server = ["/usr/sbin/sshd", "-De", "-f", f"{MPI_HOME}/.sshd_config"]
    worker = pod_template(run, server)
    for pod in (launcher, worker):
        pod["spec"]["securityContext"] |= {"runAsNonRoot": True, "runAsUser": MPI_USER}
    spec = {
        "slotsPerWorker": max(run.gpus, 1),
        "sshAuthMountPath": f"{MPI_HOME}/.ssh",
        # The SSH servers come up beside it: a launcher before them would fail once for nothing.
        "launcherCreationPolicy": "WaitForWorkersReady",
        "runPolicy": {
            "suspend": True,
            "cleanPodPolicy": "Running",
            "backoffLimit": run.count("restarts", 0),
            "activeDeadlineSeconds": run.seconds,
            "ttlSecondsAfterFinished": TTL_SECONDS,
        },
        "mpiReplicaSpecs": {
            "Launcher": {"replicas": 1, "restartPolicy": "Never", "template": launcher},
            "Worker": {
                "replicas": run.nodes,
                "restartPolicy": "Never",
                "template": worker,
            },
        },
    }
    return [
        *script_map(run),
        {"apiVersion": MPI, "kind": "MPIJob", "metadata": metadata(run), "spec": spec},
    ]


def _forwarded_variables(run: Run) -> list[str]:
    """What the launcher hands on to the workers: SSH gives a program none of the container's variables."""
    return [word for each in variables(run) for word in ("-x", each["name"])]
