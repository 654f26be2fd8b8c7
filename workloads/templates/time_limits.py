"""Which runs can have another time limit once they are submitted. Pure."""

from workloads.templates.gangs import WORKER
from workloads.templates.pods import Manifest

JOB, JOB_SET = ("batch/v1", "Job"), ("jobset.x-k8s.io/v1alpha2", "JobSet")


def timed_job(main: Manifest) -> str | None:
    """The name of the Job (batch/v1) that ends a run at its time limit; None where that cannot be changed.

    Kubernetes takes another `activeDeadlineSeconds` of a Job at any time, also of one that a JobSet made. An MPIJob
    or a TrainJob hands its own on when it makes its Jobs, and that of a pod, as of a Volcano Job, can only become
    shorter.
    """
    kind = main["apiVersion"], main["kind"]
    name = str(main["metadata"]["name"])
    if kind == JOB:
        return name
    return f"{name}-{WORKER}-0" if kind == JOB_SET else None
