"""What a refusal of Azure means, by its code: the status alone would mislead, and the code stands in several places.

https://learn.microsoft.com/azure/azure-resource-manager/troubleshooting/common-deployment-errors
"""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from connectors.errors import ConnectorError, PermanentError, TemporaryError
from connectors.patience import seconds

# These pass: somebody waited too long or asks too often, or Azure itself failed.
TEMPORARY = frozenset({408, 429})
SERVER_ERROR = 500
LONGEST_MESSAGE = 440
# Of an id the end says it all, and what is said behind it shall not be cut.
WHERE = re.compile(
    r"/subscriptions/[^/'\" ]+/resourceGroups/[^/'\" ]+/providers/", re.IGNORECASE
)
# Azure still counts what has just gone.
NESTED_SECONDS = 5.0
CODES: Mapping[str, str] = {
    # There is no hardware now, or the constraints are too tight.
    "AllocationFailed": "no_capacity",
    "ZonalAllocationFailed": "no_capacity",
    "OverconstrainedAllocationRequest": "no_capacity",
    "OverconstrainedZonalAllocationRequest": "no_capacity",
    "SkuNotAvailable": "size_not_available",
    "VMSizeNotSupported": "size_not_available",
    "NotSupported": "not_supported",
    # The subscription may use no more of a family, of a region, or of a model.
    "QuotaExceeded": "quota",
    "ResourceQuotaExceeded": "quota",
    "ErrCode_InsufficientVCPUQuota": "quota",
    "InsufficientQuota": "quota",
    "AccountQuotaExceeded": "quota",
    "ResourceNotAvailableForOffer": "quota",
    "QuotaRequestInProgress": "request_open",
    "OperationNotAllowed": "not_allowed",
    "AuthorizationFailed": "forbidden",
    "LinkedAuthorizationFailed": "forbidden",
    "RequestDisallowedByPolicy": "denied_by_policy",
    "ScopeLocked": "locked",
    "MissingSubscriptionRegistration": "not_registered",
    "SubscriptionNotRegistered": "not_registered",
    "AuthenticationFailed": "unauthorized",
    "InvalidAuthenticationToken": "unauthorized",
    "InvalidAuthenticationTokenTenant": "unauthorized",
    "InvalidAuthenticationTokenAudience": "unauthorized",
    "ExpiredAuthenticationToken": "unauthorized",
    "ResourceNotFound": "not_found",
    "NotFound": "not_found",
    "ParentResourceNotFound": "no_parent",
    "ResourceGroupNotFound": "no_resource_group",
    "SubscriptionNotFound": "no_subscription",
    "PropertyChangeNotAllowed": "immutable",
    "PreconditionFailed": "changed_meanwhile",
    "FlagMustBeSetForRestore": "soft_deleted",
    "CustomDomainInUse": "name_taken",
    "DeploymentModelNotSupported": "model_not_available",
    "PrincipalNotFound": "principal_not_found",
    "UnmatchedPrincipalType": "principal_not_found",
    "RoleAssignmentExists": "role_assignment_exists",
    "RoleAssignmentLimitExceeded": "role_assignment_limit",
    "InvalidParameter": "invalid",
}
# Something else is going on with the resource; it will be over.
BUSY = frozenset(
    {
        *(
            "Conflict",
            "AnotherOperationInProgress",
            "RequestConflict",
            "OperationPreempted",
        ),
        *("ConcurrentUpdateError", "RetryableError", "CanceledByNewRequest"),
    }
)
# Azure's own fault, which it says may pass.
INTERNAL = frozenset(
    {
        *(
            "InternalServerError",
            "InternalExecutionError",
            "InternalOperationError",
            "ServerBusy",
        ),
        *("ServerTimeout", "OperationTimedOut", "ServiceUnavailable", "GatewayTimeout"),
    }
)
THROTTLED = frozenset(
    {"TooManyRequests", "SubscriptionRequestsThrottled", "ResourceRequestsThrottled"}
)
BY_STATUS: Mapping[int, str] = {
    400: "invalid",
    401: "unauthorized",
    403: "forbidden",
    404: "not_found",
    409: "conflict",
    412: "changed_meanwhile",
}
# Providers hand on a refusal in theirs: Code="ZonalAllocationFailed", SubCode: ZonalAllocationFailed.
QUOTED = re.compile(
    r"(?:Sub)?Code\\?[\"']?\s*[:=]\s*\\?[\"']?([A-Za-z_]{3,60})", re.IGNORECASE
)


def failure(status: int, text: str, retry_after: str | None = None) -> ConnectorError:
    """What an answer means that is a refusal, or the end of an operation that failed (with status 200).

    TemporaryError for what passes by itself, PermanentError with one of the values of `CODES` or `BY_STATUS`.
    """
    error = _error_of(text)
    code, message = _code_of(error), _message_of(error)
    words = f"Azure refused ({code or status}): {message or 'it does not say why'}"
    wait = seconds(retry_after)
    if status in TEMPORARY or status >= SERVER_ERROR or code in THROTTLED | INTERNAL:
        return TemporaryError(
            f"Azure answered {status} ({code or 'no code'}): {message}",
            retry_after=wait,
        )
    if code in BUSY or (code == "OperationNotAllowed" and "in progress" in message):
        return TemporaryError(words, retry_after=wait)
    if code == "CannotDeleteResource":
        return TemporaryError(words, retry_after=wait or NESTED_SECONDS)
    if code == "OperationNotAllowed" and "quota" in message.lower():
        return PermanentError(words, code="quota")
    return PermanentError(
        words, code=CODES.get(code) or BY_STATUS.get(status, "failed")
    )


def _error_of(text: str) -> Mapping[str, Any]:
    """The part of a body that tells of a failure, in its envelope or without."""
    try:
        body = json.loads(text)
    except ValueError:
        return {}
    if not isinstance(body, dict):
        return {}
    error = body.get("error")
    if isinstance(error, dict):
        return error
    inner = (
        (body.get("properties") or {}).get("error")
        if isinstance(body.get("properties"), dict)
        else None
    )
    return inner if isinstance(inner, dict) else body


def _code_of(error: Mapping[str, Any]) -> str:
    """The code that says most: one inside another is the reason for it."""
    inner = [code for code in _inner_codes(error) if code in CODES or code in BUSY]
    return inner[-1] if inner else str(error.get("code") or "")


def _inner_codes(error: Mapping[str, Any]) -> Iterator[str]:
    yield from QUOTED.findall(str(error.get("message") or ""))
    details = error.get("details")
    for each in details if isinstance(details, list) else ():
        if isinstance(each, dict):
            yield str(each.get("code") or "")
            yield from _inner_codes(each)


def _message_of(error: Mapping[str, Any]) -> str:
    words = " ".join(str(error.get("message") or "").split())
    return WHERE.sub("…/", words)[:LONGEST_MESSAGE]
