"""Deployments of models in an account: how many thousands of tokens a minute of which version."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sandbox.azure import accounts, models
from sandbox.azure.accounts import Accounts
from sandbox.azure.bodies import name_of, number_of
from sandbox.azure.errors import ArmError, conflict, invalid, no_such_resource
from sandbox.azure.models import DEPLOYMENT, FORMAT, VERSION, Models
from sandbox.azure.operations import Operations
from sandbox.azure.routing import Answer, Call, Route
from sandbox.azure.state import Resource, State
from sandbox.azure.usage import Usage

MANY = accounts.ONE + "/deployments"
ONE = MANY + "/{deployment}"
LONGEST_NAME = 64


@dataclass(frozen=True)
class Deployments:
    """Creates, shows, changes and deletes them, one at a time in an account."""

    state: State
    operations: Operations
    usage: Usage
    accounts: Accounts
    models: Models

    def __post_init__(self) -> None:
        self.operations.teach("deployment/write", self._written, self._not_written)
        self.operations.teach(
            "deployment/delete", lambda resource_id, _: self.state.remove(resource_id)
        )

    def routes(self) -> list[Route]:
        """The operations of this module."""
        return [
            Route("GET", MANY, VERSION, self.many),
            Route("GET", ONE, VERSION, self.one),
            Route("PUT", ONE, VERSION, self.put),
            Route("DELETE", ONE, VERSION, self.delete),
        ]

    def one(self, call: Call) -> Answer:
        """Answer with a deployment."""
        known = self.state.get(
            f"{self.accounts.need(call)['id']}/deployments/{call.part('deployment')}"
        )
        if known is None:
            raise no_such_resource(
                DEPLOYMENT, call.part("deployment"), call.part("group")
            )
        return Answer(200, known)

    def many(self, call: Call) -> Answer:
        """Answer with the deployments of an account."""
        return Answer(
            200,
            {"value": list(self.state.all(DEPLOYMENT, self.accounts.need(call)["id"]))},
        )

    def put(self, call: Call) -> Answer:
        """Deploy a model, or change its capacity."""
        account, body = self.accounts.need(call), call.body()
        self._check_idle(account)
        resource_id = f"{account['id']}/deployments/{call.part('deployment')}"
        wanted = self._read(call, resource_id, account, body)
        known = self.state.get(resource_id)
        self._check_quota(account["location"], wanted, known)
        self.state.put(wanted)
        operation = self.operations.begin(
            call,
            "deployment/write",
            resource_id,
            before=known["sku"]["capacity"] if known else 0,
        )
        headers = self.operations.headers(call, operation, account["location"])
        return Answer(201 if known is None else 200, wanted, headers)

    def delete(self, call: Call) -> Answer:
        """Delete a deployment; 204 where there is none."""
        account = self.accounts.need(call)
        known = self.state.get(f"{account['id']}/deployments/{call.part('deployment')}")
        if known is None:
            return Answer(204)
        self._check_idle(account)
        operation = self.operations.begin(call, "deployment/delete", known["id"])
        headers = self.operations.headers(call, operation, account["location"])
        return Answer(
            202, None, {key: headers[key] for key in ("Location", "Retry-After")}
        )

    def _check_idle(self, account: Resource) -> None:
        if self.operations.running(account["id"]) is not None:
            message = (
                f"Another operation is being performed on the parent resource '{account['id']}'. Please try again "
                "later."
            )
            raise conflict(message, "RequestConflict")

    def _read(
        self, call: Call, resource_id: str, account: Resource, body: dict[str, Any]
    ) -> Resource:
        sku, asked = (
            body.get("sku") or {},
            (body.get("properties") or {}).get("model") or {},
        )
        name, version = str(asked.get("name")), str(asked.get("version"))
        model = (
            models.find(name, version, account["location"])
            if asked.get("format") == FORMAT
            else None
        )
        if model is None:
            message = (
                f"The model 'Format:{asked.get('format')},Name:{name},Version:{version},Source:' of account deployment "
                "is not supported."
            )
            raise ArmError(400, "DeploymentModelNotSupported", message)
        if sku.get("name") not in model.skus:
            message = (
                f"The specified SKU '{sku.get('name')}' of account deployment is not supported by the model "
                f"'{name}'."
            )
            raise invalid(message, "InvalidResourceProperties")
        capacity = number_of(sku.get("capacity"), "sku.capacity", least=1, most=1000)
        return {
            "id": resource_id,
            "name": name_of(call.part("deployment"), LONGEST_NAME),
            "type": DEPLOYMENT,
            "sku": {"name": sku["name"], "capacity": capacity},
            "properties": {
                "model": {"format": FORMAT, "name": name, "version": version},
                "versionUpgradeOption": (body.get("properties") or {}).get(
                    "versionUpgradeOption"
                )
                or "OnceNewDefaultVersionAvailable",
                "currentCapacity": capacity,
                "rateLimits": [
                    {"key": "token", "renewalPeriod": 60.0, "count": capacity * 1000.0}
                ],
                "provisioningState": "Creating",
            },
        }

    def _check_quota(
        self, region: str, wanted: Resource, known: Resource | None
    ) -> None:
        name = models.usage_of(wanted)
        used, limit = self.models.used(region)[name], self.usage.limit(region, name)
        held = (
            int(known["sku"]["capacity"])
            if known and models.usage_of(known) == name
            else 0
        )
        more = int(wanted["sku"]["capacity"]) - held
        if more > 0 and used + more > limit:
            title = models.title_of(name)
            message = (
                f"This operation require {more} new capacity in quota {title}, which is bigger than the current "
                f"available capacity {max(0, limit - used)}. The current quota usage is {used} and the quota limit is "
                f"{limit} for quota {title}."
            )
            raise ArmError(400, "InsufficientQuota", message)

    def _written(self, resource_id: str, given: Mapping[str, Any]) -> None:
        known = self.state.resources[resource_id.lower()]
        known["properties"]["provisioningState"] = "Succeeded"
        self.state.put(known)

    def _not_written(self, resource_id: str, given: Mapping[str, Any]) -> None:
        known = self.state.get(resource_id)
        if known is None:
            return
        if not given["before"]:
            self.state.remove(resource_id)
            return
        known["sku"]["capacity"] = given["before"]
        known["properties"]["provisioningState"] = "Failed"
        self.state.put(known)
