"""The kinds the sandbox API server serves, with their names, scope and verbs."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

STANDARD_VERBS = (
    "create",
    "delete",
    "deletecollection",
    "get",
    "list",
    "patch",
    "update",
    "watch",
)
CUSTOM_VERBS = (
    "delete",
    "deletecollection",
    "get",
    "list",
    "patch",
    "create",
    "update",
    "watch",
)
NAMESPACE_VERBS = ("create", "delete", "get", "list", "patch", "update", "watch")

KUEUE_GROUP = "kueue.x-k8s.io"
CILIUM_GROUP = "cilium.io"
JOBSET_GROUP = "jobset.x-k8s.io"
# Volcano's: jobs, queues and groups of pods, and what queues are told.
VOLCANO_BATCH, VOLCANO_SCHEDULING, VOLCANO_BUS = (
    *("batch.volcano.sh", "scheduling.volcano.sh"),
    "bus.volcano.sh",
)
VOLCANO_GROUPS = frozenset({VOLCANO_BATCH, VOLCANO_SCHEDULING, VOLCANO_BUS})
RBAC_GROUP = "rbac.authorization.k8s.io"
# Which project's queues a cluster has.
KUEUE, VOLCANO = "kueue", "volcano"
# The groups that are served where somebody installed them.
OPTIONAL_GROUPS = frozenset({KUEUE_GROUP, CILIUM_GROUP, JOBSET_GROUP, *VOLCANO_GROUPS})


@dataclass(frozen=True)
class Kind:
    """One served kind; ``builtin`` is False for kinds a custom resource definition would bring."""

    group: str
    version: str
    kind: str
    plural: str
    singular: str
    namespaced: bool
    short_names: tuple[str, ...] = ()
    verbs: tuple[str, ...] = STANDARD_VERBS
    subresources: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    builtin: bool = True
    # What it is called here, where another group has a kind of the same name.
    alias: str = ""

    @property
    def api_version(self) -> str:
        """The value of an object's apiVersion: ``v1`` or ``group/version``."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def own_name(self) -> str:
        """The name that no other kind has."""
        return self.alias or self.kind

    @property
    def qualified_plural(self) -> str:
        """The plural as messages name it: ``pods`` or ``jobs.batch``."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @property
    def qualified_kind(self) -> str:
        """The kind as messages of invalid objects name it: ``Pod`` or ``Job.batch``."""
        return f"{self.kind}.{self.group}" if self.group else self.kind

    @property
    def gvk(self) -> str:
        """Group, version and kind as messages name them: ``/v1, Kind=Pod`` or ``batch/v1, Kind=Job``."""
        return f"{self.group}/{self.version}, Kind={self.kind}"


_POD_SUBRESOURCES = (
    *("attach", "binding", "ephemeralcontainers", "eviction", "exec", "log"),
    *("portforward", "proxy", "resize", "status"),
)


def _core(
    kind: str,
    plural: str,
    short: str = "",
    *,
    namespaced: bool = True,
    sub: tuple[str, ...] = (),
    verbs: tuple[str, ...] = STANDARD_VERBS,
    categories: tuple[str, ...] = (),
) -> Kind:
    names = (short,) if short else ()
    return Kind(
        "", "v1", kind, plural, kind.lower(), namespaced, names, verbs, sub, categories
    )


def _rbac(kind: str, *, namespaced: bool) -> Kind:
    return Kind(RBAC_GROUP, "v1", kind, f"{kind.lower()}s", kind.lower(), namespaced)


def _policy(kind: str, plural: str, sub: tuple[str, ...] = ()) -> Kind:
    group = "admissionregistration.k8s.io"
    return Kind(
        group,
        "v1",
        kind,
        plural,
        kind.lower(),
        False,
        (),
        STANDARD_VERBS,
        sub,
        ("api-extensions",),
    )


def _kueue(
    kind: str,
    plural: str,
    short: tuple[str, ...],
    *,
    namespaced: bool = False,
    status: bool = True,
) -> Kind:
    sub = ("status",) if status else ()
    return Kind(
        KUEUE_GROUP,
        "v1beta2",
        kind,
        plural,
        kind.lower(),
        namespaced,
        short,
        CUSTOM_VERBS,
        sub,
        (),
        False,
    )


def _volcano(
    group: str,
    version: str,
    kind: str,
    short: tuple[str, ...] = (),
    *,
    namespaced: bool = True,
    status: bool = True,
    alias: str = "",
) -> Kind:
    plural, sub = f"{kind.lower()}s", ("status",) if status else ()
    return Kind(
        group,
        version,
        kind,
        plural,
        kind.lower(),
        namespaced,
        short,
        CUSTOM_VERBS,
        sub,
        (),
        False,
        alias,
    )


KINDS: tuple[Kind, ...] = (
    _core("ConfigMap", "configmaps", "cm"),
    _core("Endpoints", "endpoints", "ep"),
    _core("Event", "events", "ev"),
    _core("LimitRange", "limitranges", "limits"),
    _core(
        "Namespace",
        "namespaces",
        "ns",
        namespaced=False,
        verbs=NAMESPACE_VERBS,
        sub=("finalize", "status"),
    ),
    _core("Node", "nodes", "no", namespaced=False, sub=("proxy", "status")),
    _core("PersistentVolumeClaim", "persistentvolumeclaims", "pvc", sub=("status",)),
    _core("Pod", "pods", "po", sub=_POD_SUBRESOURCES, categories=("all",)),
    _core("ResourceQuota", "resourcequotas", "quota", sub=("status",)),
    _core("Secret", "secrets"),
    _core("Service", "services", "svc", sub=("proxy", "status"), categories=("all",)),
    _core("ServiceAccount", "serviceaccounts", "sa", sub=("token",)),
    _rbac("ClusterRole", namespaced=False),
    _rbac("ClusterRoleBinding", namespaced=False),
    _rbac("Role", namespaced=True),
    _rbac("RoleBinding", namespaced=True),
    Kind(
        "networking.k8s.io",
        "v1",
        "NetworkPolicy",
        "networkpolicies",
        "networkpolicy",
        True,
        ("netpol",),
    ),
    Kind(
        "scheduling.k8s.io",
        "v1",
        "PriorityClass",
        "priorityclasses",
        "priorityclass",
        False,
        ("pc",),
    ),
    Kind(
        "batch",
        "v1",
        "Job",
        "jobs",
        "job",
        True,
        (),
        STANDARD_VERBS,
        ("status",),
        ("all",),
    ),
    # Read only: what runs Kueue, so that its release can be seen.
    Kind(
        "apps",
        "v1",
        "Deployment",
        "deployments",
        "deployment",
        True,
        ("deploy",),
        ("get", "list", "watch"),
        (),
        ("all",),
    ),
    _policy("ValidatingAdmissionPolicy", "validatingadmissionpolicies", ("status",)),
    _policy("ValidatingAdmissionPolicyBinding", "validatingadmissionpolicybindings"),
    Kind(
        "storage.k8s.io",
        "v1",
        "StorageClass",
        "storageclasses",
        "storageclass",
        False,
        ("sc",),
    ),
    Kind("coordination.k8s.io", "v1", "Lease", "leases", "lease", True),
    Kind(
        "authorization.k8s.io",
        "v1",
        "SelfSubjectAccessReview",
        "selfsubjectaccessreviews",
        "selfsubjectaccessreview",
        False,
        (),
        ("create",),
    ),
    # Served by clusters whose network is Cilium.
    Kind(
        CILIUM_GROUP,
        "v2",
        "CiliumNetworkPolicy",
        "ciliumnetworkpolicies",
        "ciliumnetworkpolicy",
        True,
        ("cnp", "ciliumnp"),
        CUSTOM_VERBS,
        ("status",),
        ("cilium", "ciliumpolicy"),
        False,
    ),
    # Served by clusters with JobSet.
    Kind(
        JOBSET_GROUP,
        "v1alpha2",
        "JobSet",
        "jobsets",
        "jobset",
        True,
        (),
        CUSTOM_VERBS,
        ("status",),
        (),
        False,
    ),
    # Served by clusters whose queues are Volcano's.
    _volcano(VOLCANO_BATCH, "v1alpha1", "Job", ("vcjob", "vj"), alias="VolcanoJob"),
    _volcano(
        VOLCANO_SCHEDULING, "v1beta1", "Queue", ("q", "queue-v1beta1"), namespaced=False
    ),
    _volcano(
        VOLCANO_SCHEDULING,
        "v1beta1",
        "PodGroup",
        ("pg", "podgroup-v1beta1"),
        status=False,
    ),
    _volcano(VOLCANO_BUS, "v1alpha1", "Command", status=False),
    _kueue("AdmissionCheck", "admissionchecks", ("ac",)),
    _kueue("ClusterQueue", "clusterqueues", ("cq",)),
    _kueue("Cohort", "cohorts", ("co",)),
    _kueue("LocalQueue", "localqueues", ("queue", "queues", "lq"), namespaced=True),
    _kueue(
        "ResourceFlavor", "resourceflavors", ("flavor", "flavors", "rf"), status=False
    ),
    _kueue("Topology", "topologies", ("topo",), status=False),
    _kueue("WorkloadPriorityClass", "workloadpriorityclasses", ("wpc",), status=False),
    _kueue(
        "Workload",
        "workloads",
        ("kwl", "kueueworkload", "kueueworkloads"),
        namespaced=True,
    ),
)

BY_RESOURCE: Mapping[tuple[str, str, str], Kind] = MappingProxyType(
    {(kind.group, kind.version, kind.plural): kind for kind in KINDS}
)
BY_KIND: Mapping[tuple[str, str], Kind] = MappingProxyType(
    {(kind.api_version, kind.kind): kind for kind in KINDS}
)


def by_resource(group: str, version: str, plural: str) -> Kind | None:
    """Find the kind a URL names (group is empty for the core API), or None."""
    return BY_RESOURCE.get((group, version, plural))


def by_kind(api_version: str, kind: str) -> Kind | None:
    """Find the kind a body names in apiVersion and kind, or None."""
    return BY_KIND.get((api_version, kind))


def builtin(api_version: str, kind: str) -> Kind:
    """A kind that is always served; LookupError for a slip of the pen."""
    found = by_kind(api_version, kind)
    if found is None:
        raise LookupError(kind)
    return found
