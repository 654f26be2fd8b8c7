"""The everyday words for the objects of a tenancy: pages for people never show a Kubernetes term alone. Pure."""

from collections.abc import Mapping

PLAIN: Mapping[tuple[str, str], str] = {
    ("Namespace", ""): "the team’s own space",
    ("ResourceQuota", ""): "the ceiling of what can be used",
    ("ResourceQuota", "team-priorities"): "which priorities are closed to the team",
    ("LimitRange", ""): "sizes for jobs that name none",
    ("ServiceAccount", ""): "who jobs run as",
    ("ServiceAccount", "default"): "who pods are that name no account",
    ("RoleBinding", "portal-runs"): "the portal may start the team’s runs here",
    ("RoleBinding", ""): "the group may work here",
    ("NetworkPolicy", "default-deny"): "no traffic unless allowed",
    ("NetworkPolicy", "allow-jupyterhub"): "notebooks and their hub may talk",
    ("NetworkPolicy", "allow-outside"): "addresses outside that pods may reach",
    ("CiliumNetworkPolicy", ""): "names outside that pods may reach",
    ("NetworkPolicy", "allow-shared-services"): "services that all teams may call",
    ("NetworkPolicy", ""): "traffic inside the team, and names",
    ("ConfigMap", "quartermaster-dashboard"): "the team’s dashboard in Grafana",
    ("PersistentVolumeClaim", "datasets"): "shared disk for data sets",
    ("PersistentVolumeClaim", ""): "a volume of the team",
    ("ClusterQueue", ""): "the team’s GPUs and their line",
    ("LocalQueue", ""): "where jobs are handed in",
    ("Queue", ""): "the team’s GPUs and their line",
}


def plain(kind: str, name: str) -> str:
    """What an object is for, in a few everyday words; empty for a kind nobody has put into words."""
    return PLAIN.get((kind, name)) or PLAIN.get((kind, ""), "")


def state_words(*, settled: bool, reason: str) -> tuple[str, str]:
    """The badge of a tenancy, tone and word, from whether it is settled and the reason of its condition."""
    if settled and reason == "Drifted":
        return "waiting", "Changed elsewhere"
    if settled:
        return ("good", "Committed") if reason == "Committed" else ("good", "All ready")
    if reason == "Parked":
        return "bad", "Parked"
    return ("bad", "Failed") if reason == "Refused" else ("moving", "Setting up")
