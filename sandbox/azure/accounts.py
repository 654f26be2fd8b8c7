"""Accounts of Azure OpenAI: created, deleted, and still there until they are purged."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from sandbox.azure.bodies import location_of, name_of, tags_of
from sandbox.azure.errors import ArmError, conflict, invalid, no_such_resource
from sandbox.azure.models import ACCOUNTS, DELETED, DEPLOYMENT, KIND, VERSION, Models
from sandbox.azure.operations import Operations
from sandbox.azure.routing import Answer, Call, Route
from sandbox.azure.state import Resource, State
from sandbox.azure.usage import Usage

EVERYWHERE = "/subscriptions/{subscription}/providers/" + KIND
IN_GROUP = "/subscriptions/{subscription}/resourceGroups/{group}/providers/" + KIND
ONE = IN_GROUP + "/{account}"
ALL_DELETED = "/subscriptions/{subscription}/providers/Microsoft.CognitiveServices/deletedAccounts"
ONE_DELETED = (
    "/subscriptions/{subscription}/providers/Microsoft.CognitiveServices/locations/{location}"
    "/resourceGroups/{group}/deletedAccounts/{account}"
)
KEPT = timedelta(hours=48)
LONGEST_NAME = 64


@dataclass(frozen=True)
class Accounts:
    """Creates, shows, deletes and purges them."""

    state: State
    operations: Operations
    usage: Usage
    models: Models

    def __post_init__(self) -> None:
        self.operations.teach("account/write", self._written, self._not_written)
        self.operations.teach("account/delete", self._deleted)
        self.operations.teach(
            "account/purge", lambda resource_id, _: self.state.remove(resource_id)
        )

    def routes(self) -> list[Route]:
        """The operations of this module."""
        return [
            Route("GET", EVERYWHERE, VERSION, self.many),
            Route("GET", IN_GROUP, VERSION, self.many),
            Route("GET", ONE, VERSION, self.one),
            Route("PUT", ONE, VERSION, self.put),
            Route("DELETE", ONE, VERSION, self.delete),
            Route("GET", ALL_DELETED, VERSION, self.many_deleted),
            Route("GET", ONE_DELETED, VERSION, self.one_deleted),
            Route("DELETE", ONE_DELETED, VERSION, self.purge),
        ]

    def one(self, call: Call) -> Answer:
        """Answer with an account."""
        return Answer(200, self.need(call))

    def many(self, call: Call) -> Answer:
        """Answer with the accounts of a resource group, or of the subscription."""
        below = f"/subscriptions/{call.part('subscription')}"
        if "group" in call.parts:
            below = f"{below}/resourceGroups/{call.part('group')}"
        return Answer(200, {"value": list(self.state.all(KIND, below))})

    def put(self, call: Call) -> Answer:
        """Create an account, or change the tags and the network of one; its operation is asked after by its state."""
        body, resource_id = call.body(), id_of(call)
        self._check_idle(resource_id)
        known, said = self.state.get(resource_id), body.get("properties") or {}
        location = location_of(body)
        if known is not None:
            if location != known["location"]:
                raise conflict(
                    "The location of an account cannot be changed.",
                    "InvalidResourceLocation",
                )
            kept = {key: value for key, value in said.items() if key != "restore"}
            changed = {
                **known,
                "tags": tags_of(body),
                "properties": {**known["properties"], **kept},
            }
            changed["properties"]["provisioningState"] = "Accepted"
            self.state.put(changed)
            self.operations.begin(call, "account/write", resource_id)
            return Answer(
                200, changed, {"Retry-After": str(self.operations.retry_after)}
            )
        self._check_deleted(
            resource_id, location, is_restored=bool(said.get("restore"))
        )
        made = self._made(call, body, resource_id, location)
        self._check_name(made)
        if self.models.used(location)[ACCOUNTS] >= self.usage.limit(location, ACCOUNTS):
            message = "The account quota of the subscription in the region is used up."
            raise ArmError(400, "AccountQuotaExceeded", message)
        self.state.put(made)
        self.operations.begin(call, "account/write", resource_id)
        return Answer(201, made, {"Retry-After": str(self.operations.retry_after)})

    def delete(self, call: Call) -> Answer:
        """Delete an account with its deployments; it keeps name and quota until it is purged."""
        known = self.state.get(id_of(call))
        if known is None:
            return Answer(204)
        self._check_idle(known["id"])
        known["properties"]["provisioningState"] = "Deleting"
        self.state.put(known)
        operation = self.operations.begin(call, "account/delete", known["id"])
        headers = self.operations.headers(call, operation, known["location"])
        # Only by its result, which is 202 until it is over.
        return Answer(
            202, None, {key: headers[key] for key in ("Location", "Retry-After")}
        )

    def many_deleted(self, call: Call) -> Answer:
        """Answer with the accounts that are deleted and not purged."""
        return Answer(200, {"value": [_shown(row) for row in self.state.all(DELETED)]})

    def one_deleted(self, call: Call) -> Answer:
        """Answer with one of them."""
        return Answer(200, _shown(self._need_deleted(call)))

    def purge(self, call: Call) -> Answer:
        """Forget a deleted account."""
        known = self.state.get(_deleted_id(call))
        if known is None:
            return Answer(204)
        operation = self.operations.begin(call, "account/purge", known["id"])
        headers = self.operations.headers(call, operation, known["location"])
        return Answer(
            202, None, {key: headers[key] for key in ("Location", "Retry-After")}
        )

    def need(self, call: Call) -> Resource:
        """Return the account that a call names; raise ArmError 404."""
        known = self.state.get(id_of(call))
        if known is None:
            raise no_such_resource(KIND, call.part("account"), call.part("group"))
        return known

    def _check_idle(self, resource_id: str) -> None:
        if self.operations.running(resource_id) is not None:
            message = (
                f"Another operation is being performed on the parent resource '{resource_id}'. Please try again "
                "later."
            )
            raise conflict(message, "RequestConflict")

    def _check_deleted(
        self, resource_id: str, location: str, *, is_restored: bool
    ) -> None:
        for row in self.state.all(DELETED):
            if (
                row["sandbox"]["id"].lower() == resource_id.lower()
                and row["location"] == location
                and not is_restored
            ):
                message = (
                    f"An existing resource with ID '{resource_id}' has been soft-deleted. To restore the resource, "
                    "you must specify 'restore' to be 'true' in the property. If you don't want to restore existing "
                    "resource, please purge it first."
                )
                raise conflict(message, "FlagMustBeSetForRestore")

    def _check_name(self, made: Resource) -> None:
        name = made["properties"].get("customSubDomainName")
        for row in (*self.state.all(KIND), *self.state.all(DELETED)):
            was = row["sandbox"]["id"] if row["type"] == DELETED else row["id"]
            if (
                name
                and row["properties"].get("customSubDomainName") == name
                and was != made["id"]
            ):
                message = (
                    f"Please pick a different name. The subdomain name '{name}' is not available as it's already used "
                    "by a resource."
                )
                raise conflict(message, "CustomDomainInUse")

    def _made(
        self, call: Call, body: dict[str, Any], resource_id: str, location: str
    ) -> Resource:
        if body.get("kind") != "OpenAI" or (body.get("sku") or {}).get("name") != "S0":
            raise invalid(
                "The account has to be of kind OpenAI and SKU S0.", "InvalidApiSetId"
            )
        said = {
            key: value
            for key, value in (body.get("properties") or {}).items()
            if key != "restore"
        }
        domain = said.get("customSubDomainName")
        host = (
            f"{domain}.openai.azure.com"
            if domain
            else f"{location}.api.cognitive.microsoft.com"
        )
        return {
            "id": resource_id,
            "name": name_of(call.part("account"), LONGEST_NAME),
            "type": KIND,
            "location": location,
            "kind": "OpenAI",
            "sku": {"name": "S0"},
            "tags": tags_of(body),
            "identity": body.get("identity"),
            "properties": {
                "publicNetworkAccess": "Enabled",
                **said,
                "endpoint": f"https://{host}/",
                "provisioningState": "Accepted",
                "dateCreated": datetime.fromtimestamp(
                    self.state.clock.now(), UTC
                ).isoformat(),
            },
        }

    def _written(self, resource_id: str, given: Mapping[str, Any]) -> None:
        known = self.state.resources[resource_id.lower()]
        known["properties"]["provisioningState"] = "Succeeded"
        self.state.put(known)
        for row in list(self.state.all(DELETED)):
            if row["sandbox"]["id"].lower() == resource_id.lower():
                self.state.remove(row["id"])
                for deployment in row["sandbox"]["deployments"]:
                    self.state.put(deployment)

    def _not_written(self, resource_id: str, given: Mapping[str, Any]) -> None:
        if (known := self.state.get(resource_id)) is not None:
            known["properties"]["provisioningState"] = "Failed"
            self.state.put(known)

    def _deleted(self, resource_id: str, given: Mapping[str, Any]) -> None:
        known = self.state.resources[resource_id.lower()]
        inside = list(self.state.all(DEPLOYMENT, resource_id))
        for deployment in inside:
            self.state.remove(deployment["id"])
        self.state.remove(resource_id)
        now = datetime.fromtimestamp(self.state.clock.now(), UTC)
        _, _, subscription, _, group, *_ = resource_id.split("/")
        at = f"/subscriptions/{subscription}/providers/Microsoft.CognitiveServices/locations/{known['location']}"
        said = {
            **known["properties"],
            "deletionDate": now.isoformat(),
            "scheduledPurgeDate": (now + KEPT).isoformat(),
        }
        gone = {
            **known,
            "id": f"{at}/resourceGroups/{group}/deletedAccounts/{known['name']}",
            "type": DELETED,
        }
        self.state.put(
            {
                **gone,
                "properties": said,
                "sandbox": {"id": resource_id, "deployments": inside},
            }
        )

    def _need_deleted(self, call: Call) -> Resource:
        known = self.state.get(_deleted_id(call))
        if known is None:
            raise no_such_resource(
                "Microsoft.CognitiveServices/deletedAccounts", call.part("account"), ""
            )
        return known


def id_of(call: Call) -> str:
    """Return the id of the account that a call names."""
    at = f"/subscriptions/{call.part('subscription')}/resourceGroups/{call.part('group')}/providers/{KIND}"
    return f"{at}/{call.part('account')}"


def _deleted_id(call: Call) -> str:
    at = f"/subscriptions/{call.part('subscription')}/providers/Microsoft.CognitiveServices"
    where = (
        f"{at}/locations/{call.part('location')}/resourceGroups/{call.part('group')}"
    )
    return f"{where}/deletedAccounts/{call.part('account')}"


def _shown(row: Resource) -> Resource:
    return {key: value for key, value in row.items() if key != "sandbox"}
