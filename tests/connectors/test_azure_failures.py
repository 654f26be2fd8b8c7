"""What each refusal of Azure means, in every shape that its code comes in."""

import json
from typing import Any

import pytest

from connectors.azure.failures import failure
from connectors.errors import PermanentError, TemporaryError

OVER_QUOTA = "Operation could not be completed as it results in exceeding approved NCADSA100v4 Cores quota."
IN_PROGRESS = "Operation is not allowed: Another operation (Updating) is in progress, please wait for it."
HANDED_ON = (
    'Reconcile VMSS failed: Code="ZonalAllocationFailed" Message="Allocation failed." '
    "SubCode: ZonalAllocationFailed"
)


def error(code: str, message: str = "Because.", **more: Any) -> str:
    return json.dumps({"error": {"code": code, "message": message, **more}})


@pytest.mark.parametrize(
    ("status", "text", "code"),
    [
        # There is none, or none for us.
        (409, error("AllocationFailed"), "no_capacity"),
        (409, error("ZonalAllocationFailed"), "no_capacity"),
        (409, error("OverconstrainedAllocationRequest"), "no_capacity"),
        (409, error("OverconstrainedZonalAllocationRequest"), "no_capacity"),
        (409, error("SkuNotAvailable"), "size_not_available"),
        (400, error("VMSizeNotSupported"), "size_not_available"),
        (400, error("NotSupported"), "not_supported"),
        # Quota has four names, and one that it shares.
        (409, error("QuotaExceeded"), "quota"),
        (403, error("ResourceQuotaExceeded"), "quota"),
        (409, error("OperationNotAllowed", OVER_QUOTA), "quota"),
        (
            400,
            json.dumps(
                {
                    "code": "ErrCode_InsufficientVCPUQuota",
                    "message": "no",
                    "details": None,
                }
            ),
            "quota",
        ),
        (400, error("InsufficientQuota"), "quota"),
        (400, error("AccountQuotaExceeded"), "quota"),
        (200, error("ResourceNotAvailableForOffer"), "quota"),
        (409, error("QuotaRequestInProgress"), "request_open"),
        # What the state of things does not allow.
        (
            409,
            error("OperationNotAllowed", "It has machines associated."),
            "not_allowed",
        ),
        (409, error("PropertyChangeNotAllowed"), "immutable"),
        (412, error("PreconditionFailed"), "changed_meanwhile"),
        (412, "", "changed_meanwhile"),
        (409, error("FlagMustBeSetForRestore"), "soft_deleted"),
        (409, error("CustomDomainInUse"), "name_taken"),
        (400, error("DeploymentModelNotSupported"), "model_not_available"),
        (409, error("SomethingNew"), "conflict"),
        # Who may not.
        (403, error("AuthorizationFailed"), "forbidden"),
        (403, error("LinkedAuthorizationFailed"), "forbidden"),
        (403, error("SomethingNew"), "forbidden"),
        (403, error("RequestDisallowedByPolicy"), "denied_by_policy"),
        (409, error("ScopeLocked"), "locked"),
        (409, error("MissingSubscriptionRegistration"), "not_registered"),
        (409, error("SubscriptionNotRegistered"), "not_registered"),
        (401, error("AuthenticationFailed"), "unauthorized"),
        (401, error("InvalidAuthenticationToken"), "unauthorized"),
        (401, error("ExpiredAuthenticationToken"), "unauthorized"),
        (401, "", "unauthorized"),
        # What is not there.
        (404, error("ResourceNotFound"), "not_found"),
        (404, json.dumps({"code": "NotFound", "message": "no pool"}), "not_found"),
        (404, "<html>", "not_found"),
        (404, error("ParentResourceNotFound"), "no_parent"),
        (404, error("ResourceGroupNotFound"), "no_resource_group"),
        (404, error("SubscriptionNotFound"), "no_subscription"),
        (400, error("PrincipalNotFound"), "principal_not_found"),
        (400, error("UnmatchedPrincipalType"), "principal_not_found"),
        (409, error("RoleAssignmentExists"), "role_assignment_exists"),
        (400, error("RoleAssignmentLimitExceeded"), "role_assignment_limit"),
        # What makes no sense.
        (400, error("InvalidParameter"), "invalid"),
        (400, error("SomethingNew"), "invalid"),
        (418, error("SomethingNew"), "failed"),
        (418, "", "failed"),
        # An operation that failed is told with status 200.
        (
            200,
            json.dumps({"status": "Failed", "error": {"code": "AllocationFailed"}}),
            "no_capacity",
        ),
        (
            200,
            json.dumps({"properties": {"error": {"code": "AllocationFailed"}}}),
            "no_capacity",
        ),
        (200, json.dumps({"status": "Failed"}), "failed"),
        (200, "[]", "failed"),
        # A code inside another one is the reason.
        (409, error("ReconcileVMSSAgentPoolFailed", HANDED_ON), "no_capacity"),
        (
            409,
            error(
                "DeploymentFailed",
                details=[{"code": "Conflict", "message": error("QuotaExceeded")}],
            ),
            "quota",
        ),
        (
            409,
            error(
                "X", details=[{"code": "A", "details": [{"code": "SkuNotAvailable"}]}]
            ),
            "size_not_available",
        ),
        (409, error("X", details=["A", None]), "conflict"),
        (409, error("X", details="A"), "conflict"),
    ],
)
def test_it_stays_refused(status: int, text: str, code: str) -> None:
    told = failure(status, text)
    assert isinstance(told, PermanentError), told
    assert told.code == code


@pytest.mark.parametrize(
    ("status", "text", "after", "wait"),
    [
        (429, error("TooManyRequests"), "17", 17.0),
        (429, error("SubscriptionRequestsThrottled"), "30", 30.0),
        (429, "", None, None),
        (408, "", None, None),
        (500, error("InternalServerError"), None, None),
        (502, "<html>Bad gateway</html>", None, None),
        (503, error("ServerBusy"), "5", 5.0),
        (504, "", "nonsense", None),
        (200, error("InternalExecutionError"), None, None),
        (200, error("OperationTimedOut"), None, None),
        (409, error("Conflict"), None, None),
        (409, error("AnotherOperationInProgress"), "3", 3.0),
        (409, error("RequestConflict"), None, None),
        (409, error("OperationNotAllowed", IN_PROGRESS), None, None),
        (200, error("OperationPreempted"), None, None),
        (409, error("RetryableError"), None, None),
        # Azure counts for some seconds what has just gone.
        (409, error("CannotDeleteResource"), None, 5.0),
        (409, error("CannotDeleteResource"), "9", 9.0),
    ],
)
def test_it_passes(
    status: int, text: str, after: str | None, wait: float | None
) -> None:
    told = failure(status, text, after)
    assert isinstance(told, TemporaryError), told
    assert told.retry_after == wait


def test_it_says_what_azure_says() -> None:
    told = failure(409, error("SkuNotAvailable", "The size\n is   not available."))
    assert told.message == "Azure refused (SkuNotAvailable): The size is not available."
    assert failure(418, "").message == "Azure refused (418): it does not say why"
    assert len(failure(400, error("X", "y" * 5000)).message) < 500
