"""Refusals in the words of Azure Resource Manager and of its resource providers."""

from collections.abc import Mapping
from typing import Any


class ArmError(Exception):
    """Azure says no, with an HTTP status and its own code; `is_bare` where a provider leaves out the envelope."""

    def __init__(
        self,
        status: int,
        code: str,
        message: str,
        *,
        headers: Mapping[str, str] | None = None,
        is_bare: bool = False,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.headers = dict(headers or {})
        self.is_bare = is_bare

    def body(self) -> dict[str, Any]:
        """Return the answer as JSON data."""
        said: dict[str, Any] = {"code": self.code, "message": str(self)}
        # AKS answers so.
        return (
            {**said, "details": None, "subcode": ""}
            if self.is_bare
            else {"error": said}
        )


def invalid(message: str, code: str = "InvalidParameter") -> ArmError:
    """Return the answer to a value that cannot be."""
    return ArmError(400, code, message)


def conflict(message: str, code: str = "OperationNotAllowed") -> ArmError:
    """Return the answer to what the present state does not allow."""
    return ArmError(409, code, message)


def no_such_resource(kind: str, name: str, group: str) -> ArmError:
    """Return the answer for a resource that is not there."""
    message = (
        f"The Resource '{kind}/{name}' under resource group '{group}' was not found. "
        "For more details please go to https://aka.ms/ARMResourceNotFoundFix"
    )
    return ArmError(404, "ResourceNotFound", message)


def no_such_parent(kind: str, parent: str) -> ArmError:
    """Return the answer for a part of a resource that is not there."""
    message = (
        f"Failed to perform 'write' on resource(s) of type '{kind}', because the parent resource '{parent}' could not "
        "be found."
    )
    return ArmError(404, "ParentResourceNotFound", message)


def no_such_resource_group(group: str) -> ArmError:
    """Return the answer for a resource group that is not there."""
    return ArmError(
        404, "ResourceGroupNotFound", f"Resource group '{group}' could not be found."
    )


def no_such_subscription(subscription: str) -> ArmError:
    """Return the answer for a subscription that the tenant does not have."""
    return ArmError(
        404,
        "SubscriptionNotFound",
        f"The subscription '{subscription}' could not be found.",
    )


def not_allowed(client: str, oid: str, action: str, scope: str) -> ArmError:
    """Return the answer to a caller without the role."""
    message = (
        f"The client '{client}' with object id '{oid}' does not have authorization to perform action "
        f"'{action}' over scope '{scope}' or the scope is invalid. If access was recently granted, please refresh "
        "your credentials."
    )
    return ArmError(403, "AuthorizationFailed", message)


def link_not_allowed(oid: str, action: str, scope: str, linked: str) -> ArmError:
    """Return the answer to a caller that may do something, but not with what it names."""
    message = (
        f"The client '{oid}' with object id '{oid}' has permission to perform action '{action}' on scope '{scope}'; "
        "however, it does not have permission to perform action(s) "
        f"'Microsoft.Compute/capacityReservationGroups/deploy/action' on the linked scope(s) '{linked}' "
        "(respectively) or the linked scope(s) are invalid."
    )
    return ArmError(403, "LinkedAuthorizationFailed", message)


def over_quota(name: str, region: str, *, limit: int, used: int, more: int) -> ArmError:
    """Return Compute's answer to what would use more vCPUs than are approved."""
    shown = {"cores": "Total Regional", "lowPriorityCores": "LowPriority"}.get(
        name, name
    )
    message = (
        f"Operation could not be completed as it results in exceeding approved {shown} Cores quota. Additional details "
        f"- Deployment Model: Resource Manager, Location: {region}, Current Limit: {limit}, Current Usage: {used}, "
        f"Additional Required: {more}, (Minimum) New Limit Required: {used + more}. Setup Alerts when Quota reaches "
        "threshold. Learn more at https://aka.ms/quotamonitoringalerting . Submit a request for Quota increase at "
        "https://aka.ms/ProdportalCRP/ by specifying parameters listed in the ‘Details’ section for deployment to "
        "succeed. Please read more about quota limits at "
        "https://docs.microsoft.com/en-us/azure/azure-supportability/per-vm-quota-requests"
    )
    return conflict(message)


def pool_over_quota(
    name: str, region: str, *, limit: int, used: int, more: int
) -> ArmError:
    """Return AKS's answer to the same."""
    left = max(0, limit - used)
    if name == "cores":
        message = (
            f"Insufficient regional vcpu quota left for location {region}. left regional vcpu quota {left}, "
            f"requested quota {more}."
        )
    else:
        message = f"Insufficient vcpu quota requested {more}, remaining {left} for family {name} for region {region}."
    message += (
        " If you want to increase the quota, please follow this instruction: "
        "https://learn.microsoft.com/en-us/azure/quotas/view-quotas. Surge nodes would also consume vcpu quota"
    )
    return ArmError(400, "ErrCode_InsufficientVCPUQuota", message, is_bare=True)


def busy() -> ArmError:
    """Return Compute's answer while something else is going on with a resource."""
    message = (
        "The request failed due to conflict with a concurrent request. To resolve it, please refer to "
        "https://aka.ms/activitylog to get more details on the conflicting requests."
    )
    return conflict(message, "Conflict")


def size_not_available(
    size: str, region: str, zones: str, subscription: str
) -> ArmError:
    """Return the answer for a size that the subscription does not get there."""
    message = (
        f"The requested VM size for resource 'Following SKUs have failed for Capacity Restrictions: {size}' is "
        f"currently not available in location '{region}' zones '{zones}' for subscription '{subscription}'. Please "
        "try another size or deploy to a different location or zones. See https://aka.ms/azureskunotavailable for "
        "details."
    )
    return conflict(message, "SkuNotAvailable")
