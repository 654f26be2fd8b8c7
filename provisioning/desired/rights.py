"""Who may do what in a tenancy's namespace: the space with its guards, its people, who its jobs run as. Pure."""

from provisioning.desired.objects import (
    DEFAULT_ACCOUNT,
    DOMAIN,
    Manifest,
    guarded,
    named_after,
    placed,
)
from provisioning.desired.spec import TenancySpec

TEAM_ROLE = "quartermaster-team-user"
RUN_ROLE, RUNS = "quartermaster-runs", "portal-runs"
# The portal's own account, by either name that provisioner.yaml knows it by.
PORTAL_ACCOUNT, PORTAL_USER = ("quartermaster", "provisioner"), "quartermaster"
GROUP_LABEL = f"{DOMAIN}/group"
RBAC = "rbac.authorization.k8s.io"


def namespace(spec: TenancySpec) -> Manifest:
    """The team's own space; pods that break out of their container are refused, careless ones warned of."""
    guards = {
        # By whom the cluster's admission policies know the team's people (deploy/kubernetes/team-guards.yaml).
        GROUP_LABEL: spec.entra_group,
        **({} if spec.has_volcano else {"kueue.x-k8s.io/managed": "true"}),
        "pod-security.kubernetes.io/enforce": "baseline",
        "pod-security.kubernetes.io/enforce-version": "latest",
        "pod-security.kubernetes.io/warn": "restricted",
        "pod-security.kubernetes.io/audit": "restricted",
    }
    return guarded(named_after(spec, "v1", "Namespace", extra=guards))


def job_account(spec: TenancySpec) -> Manifest:
    """Who jobs run as: it holds no right, and gets no token unless a job asks for one."""
    return placed(
        spec, "v1", "ServiceAccount", "workload", automountServiceAccountToken=False
    )


def default_account(spec: TenancySpec) -> Manifest:
    """Who pods are that name no account: the same, once the portal has adopted what Kubernetes makes by itself."""
    return placed(
        spec,
        "v1",
        "ServiceAccount",
        DEFAULT_ACCOUNT,
        automountServiceAccountToken=False,
    )


def team_binding(spec: TenancySpec) -> Manifest:
    """The team's Entra group, by its object id, holds the one role that the installation ships for teams.

    A Role per namespace would need the portal to hold every right it hands out; it may bind this one role instead.
    """
    return placed(
        spec,
        f"{RBAC}/v1",
        "RoleBinding",
        "team-users",
        roleRef={"apiGroup": RBAC, "kind": "ClusterRole", "name": TEAM_ROLE},
        subjects=[{"apiGroup": RBAC, "kind": "Group", "name": spec.entra_group}],
    )


def run_binding(spec: TenancySpec) -> Manifest:
    """The portal starts, stops and reads the logs of runs in this namespace, and in no other that it did not make.

    Bound here and not for the whole cluster: no admission policy sees who reads a log.
    """
    namespace, name = PORTAL_ACCOUNT
    return placed(
        spec,
        f"{RBAC}/v1",
        "RoleBinding",
        RUNS,
        roleRef={"apiGroup": RBAC, "kind": "ClusterRole", "name": RUN_ROLE},
        subjects=[
            {"kind": "ServiceAccount", "name": name, "namespace": namespace},
            {"apiGroup": RBAC, "kind": "User", "name": PORTAL_USER},
        ],
    )
