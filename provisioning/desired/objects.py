"""What every object of ours has in common: kind, place, and the labels by which it is known and charged. Pure."""

from typing import Any

from provisioning.desired.spec import TenancySpec

Manifest = dict[str, Any]

DOMAIN = "quartermaster.io"
MANAGED_BY = {"app.kubernetes.io/managed-by": "quartermaster"}
TENANCY_LABEL = f"{DOMAIN}/tenancy"
INSTALLATION_LABEL = f"{DOMAIN}/installation"
# Kubernetes makes an account of this name in every namespace, a moment after the namespace itself.
DEFAULT_ACCOUNT = "default"
# Flux and Argo CD delete what is no longer in their repository: never this, with everything that is in it.
PRUNE_GUARDS = {
    "kustomize.toolkit.fluxcd.io/prune": "disabled",
    "argocd.argoproj.io/sync-options": "Prune=false,Delete=false",
}


def labels(spec: TenancySpec) -> dict[str, str]:
    """Labels that every object of a tenancy carries: ownership, and what cost is put under."""
    costs = cost_labels(
        team=spec.team,
        project=spec.project,
        cost_centre=spec.cost_centre,
        environment=spec.environment,
    )
    return MANAGED_BY | owner(spec) | costs


def cost_labels(
    *, team: str, project: str, cost_centre: str, environment: str, **ours: str
) -> dict[str, str]:
    """Labels by which cost tools and the portal know whose something is; `ours` stand under the portal's domain alone.

    None of them is one by which the portal knows objects of its own.
    """
    costs = {
        "team": team,
        "project": project,
        "cost-center": cost_centre,
        "environment": environment,
    }
    # Cost tools (Azure Cost Management, OpenCost, Kubecost) read the bare names; ours cannot be anybody else's.
    return {
        **costs,
        **{f"{DOMAIN}/{name}": value for name, value in {**costs, **ours}.items()},
    }


def owner(spec: TenancySpec) -> dict[str, str]:
    """The labels that name one tenancy of one portal: two portals on a cluster count their tenancies alike."""
    named = {INSTALLATION_LABEL: spec.installation} if spec.installation else {}
    return {TENANCY_LABEL: str(spec.tenancy)} | named


def selector(spec: TenancySpec) -> str:
    """A label selector for what belongs to a tenancy."""
    return ",".join(f"{name}={value}" for name, value in owner(spec).items())


def placed(
    spec: TenancySpec,
    /,
    api: str,
    kind: str,
    name: str,
    *,
    extra: dict[str, str] | None = None,
    **rest: Any,
) -> Manifest:
    """An object inside the tenancy's namespace, and in no other."""
    metadata = {
        "name": name,
        "namespace": spec.namespace,
        "labels": labels(spec) | (extra or {}),
    }
    return {"apiVersion": api, "kind": kind, "metadata": metadata, **rest}


def named_after(
    spec: TenancySpec,
    /,
    api: str,
    kind: str,
    *,
    extra: dict[str, str] | None = None,
    **rest: Any,
) -> Manifest:
    """A cluster-wide object of one tenancy: its name is the namespace's, which no other tenancy has."""
    metadata = {"name": spec.namespace, "labels": labels(spec) | (extra or {})}
    return {"apiVersion": api, "kind": kind, "metadata": metadata, **rest}


def shared(api: str, kind: str, name: str, **rest: Any) -> Manifest:
    """A cluster-wide object that all tenancies of a cluster share."""
    metadata = {"name": name, "labels": MANAGED_BY | {f"{DOMAIN}/scope": "cluster"}}
    return {"apiVersion": api, "kind": kind, "metadata": metadata, **rest}


def guarded(manifest: Manifest) -> Manifest:
    """The object with the marks by which Flux and Argo CD leave it alone when its file goes."""
    return {
        **manifest,
        "metadata": {**manifest["metadata"], "annotations": dict(PRUNE_GUARDS)},
    }
