"""What names of resources mean: which are standard, which are counted, which may be overcommitted."""

from sandbox.kubernetes.causes import Cause, invalid_value
from sandbox.kubernetes.names import qualified_name

CONTAINER_RESOURCES = frozenset({"cpu", "memory", "ephemeral-storage"})
COMPUTE_RESOURCES = ("cpu", "memory", "ephemeral-storage")
COUNTED = frozenset(
    {
        "pods",
        "resourcequotas",
        "services",
        "replicationcontrollers",
        "secrets",
        "persistentvolumeclaims",
    }
    | {"configmaps", "services.nodeports", "services.loadbalancers"}
)
QUOTA_RESOURCES = frozenset(
    {*CONTAINER_RESOURCES, *COUNTED, "requests.storage"}
    | {
        f"{kind}.{name}"
        for kind in ("requests", "limits")
        for name in COMPUTE_RESOURCES
    }
)
STANDARD_RESOURCES = QUOTA_RESOURCES | {"storage"}
HUGEPAGES = ("hugepages-", "requests.hugepages-")


def is_native(resource: str) -> bool:
    """Whether Kubernetes itself knows the resource: no domain, or a domain of kubernetes.io."""
    return "/" not in resource or "kubernetes.io/" in resource


def is_extended(resource: str) -> bool:
    """Whether the resource is one of a device plugin, such as nvidia.com/gpu; quota keys are none."""
    return not is_native(resource) and not resource.startswith("requests.")


def may_be_overcommitted(resource: str) -> bool:
    """Whether requests may be smaller than limits."""
    return is_native(resource) and not resource.startswith("hugepages-")


def resource_name(resource: str, field: str) -> list[Cause]:
    """What is wrong with a resource name anywhere."""
    wrong = [invalid_value(field, resource, text) for text in qualified_name(resource)]
    if (
        wrong
        or "/" in resource
        or resource in STANDARD_RESOURCES
        or resource.startswith(HUGEPAGES)
    ):
        return wrong
    return [
        invalid_value(
            field, resource, "must be a standard resource type or fully qualified"
        )
    ]


def quota_resource(resource: str, field: str) -> list[Cause]:
    """What is wrong with a key of a ResourceQuota."""
    wrong = resource_name(resource, field)
    if "/" in resource or resource in QUOTA_RESOURCES or resource.startswith(HUGEPAGES):
        return wrong
    return [
        *wrong,
        invalid_value(field, resource, "must be a standard resource for quota"),
    ]


def container_resource(resource: str, field: str) -> list[Cause]:
    """What is wrong with a resource name of a container."""
    wrong = resource_name(resource, field)
    if (
        "/" in resource
        or resource in CONTAINER_RESOURCES
        or resource.startswith("hugepages-")
    ):
        return wrong
    return [
        *wrong,
        invalid_value(field, resource, "must be a standard resource for containers"),
    ]
