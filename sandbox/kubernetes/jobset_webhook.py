"""JobSet's own webhook: what it fills in and what it refuses, and how its answers spell a JobSet out. Pure."""

import copy
from collections.abc import Iterator
from typing import Any

from sandbox.kubernetes.causes import items, part
from sandbox.kubernetes.kueue_rules import IMMUTABLE, denied
from sandbox.kubernetes.names import LABEL_MAX
from sandbox.kubernetes.status import Refusal

WEBHOOK = "vjobset.kb.io"
REASONS = frozenset(
    {
        "BackoffLimitExceeded",
        "DeadlineExceeded",
        "FailedIndexes",
        "MaxFailedIndexesExceeded",
        "PodFailurePolicy",
    }
)
# What Kueue may change in the pods of a JobSet that does not run.
TUNABLE_METADATA, TUNABLE_SPEC = (
    ("annotations", "labels"),
    ("nodeSelector", "tolerations", "schedulingGates"),
)
_ALONE = "the sandbox restarts a whole JobSet only, by making its Jobs anew"
_SUFFIX = "-abcde"
Object = dict[str, Any]


def born(jobset: Object) -> Object:
    """A new JobSet with everything that its webhook fills in."""
    found = copy.deepcopy(jobset)
    spec = part(found, "spec")
    spec.setdefault("successPolicy", {"operator": "All"})
    spec.setdefault("startupPolicy", {"startupPolicyOrder": "AnyOrder"})
    network = spec.setdefault("network", {})
    for name in ("enableDNSHostnames", "publishNotReadyAddresses"):
        network.setdefault(name, True)
    for replicated in items(spec, "replicatedJobs"):
        job = part(part(replicated, "template"), "spec")
        job.setdefault("completionMode", "Indexed")
        part(part(job, "template"), "spec").setdefault("restartPolicy", "OnFailure")
    return found


def spelt_out(jobset: Object) -> Object:
    """A JobSet that a webhook wrote again: it has the metadata of each template, even where nothing is in it."""
    found = copy.deepcopy(jobset)
    for replicated in items(part(found, "spec"), "replicatedJobs"):
        template = part(replicated, "template")
        template.setdefault("metadata", {})
        part(part(template, "spec"), "template").setdefault("metadata", {})
    return found


def birth_refusal(jobset: Object) -> Refusal | None:
    """The refusal of a new JobSet, or None."""
    said = list(_wrong(jobset))
    return denied(WEBHOOK, "\n".join(said)) if said else None


def change_refusal(jobset: Object, before: Object) -> Refusal | None:
    """The refusal of other Jobs for a JobSet that runs, or None."""
    now, then = jobset["spec"], before["spec"]
    tunable = bool(now.get("suspend") or then.get("suspend"))
    if [_fixed(one, tunable) for one in items(now, "replicatedJobs")] == [
        _fixed(one, tunable) for one in items(then, "replicatedJobs")
    ]:
        return None
    return denied(WEBHOOK, f"spec.replicatedJobs: Invalid value: {IMMUTABLE}")


def _fixed(replicated: Object, tunable: bool) -> Object:
    """What of a replicated Job may not change."""
    found = copy.deepcopy(replicated)
    template = part(part(part(found, "template"), "spec"), "template")
    if tunable:
        for where, names in (("metadata", TUNABLE_METADATA), ("spec", TUNABLE_SPEC)):
            for name in names:
                part(template, where).pop(name, None)
    # Nothing and none are the same.
    for owner in (part(found, "template"), template):
        if not owner.get("metadata"):
            owner.pop("metadata", None)
    return found


def _wrong(jobset: Object) -> Iterator[str]:
    name, spec = str(jobset["metadata"].get("name") or ""), part(jobset, "spec")
    replicated = items(spec, "replicatedJobs")
    known = {str(one.get("name")) for one in replicated}
    if replicated and replicated[0].get("dependsOn"):
        yield "DependsOn can't be set for the first ReplicatedJob"
    for one in replicated:
        yield from _too_long(name, one)
    for target in part(spec, "successPolicy").get("targetReplicatedJobs") or ():
        if target not in known:
            yield f"invalid replicatedJob name '{target}' does not appear in .spec.ReplicatedJobs"
    for rule in items(part(spec, "failurePolicy"), "rules"):
        yield from _wrong_rule(rule, known)
    if part(spec, "failurePolicy").get("restartStrategy") == "InPlaceRestart":
        yield _ALONE
    if spec.get("volumeClaimPolicies"):
        yield "the sandbox makes no claims for JobSets"


def _too_long(name: str, replicated: Object) -> Iterator[str]:
    job = f"{name}-{replicated.get('name')}-{max(0, int(replicated.get('replicas', 1)) - 1)}"
    if len(job) > LABEL_MAX:
        yield "JobSet name is too long, job names generated for this JobSet will exceed 63 characters"
    spec = part(part(replicated, "template"), "spec")
    numbered = spec.get("completionMode") == "Indexed" and "completions" in spec
    if numbered and len(f"{job}-{int(spec['completions']) - 1}{_SUFFIX}") > LABEL_MAX:
        yield "JobSet name is too long, pod names generated for this JobSet will exceed 63 characters"


def _wrong_rule(rule: Object, known: set[str]) -> Iterator[str]:
    for target in rule.get("targetReplicatedJobs") or ():
        if target not in known:
            yield (
                f"invalid replicatedJob name '{target}' in failure policy does not appear in .spec.ReplicatedJobs"
            )
    for reason in rule.get("onJobFailureReasons") or ():
        if reason not in REASONS:
            yield f"invalid job failure reason '{reason}' in failure policy is not a recognized job failure reason"
    if rule.get("action") in {"RestartJob", "RestartJobAndIgnoreMaxRestarts"}:
        yield _ALONE
