"""Azure OpenAI: accounts, the models deployed in them, and the quota of both. The only importer of its SDK.

Capacity is in thousands of tokens a minute. A deleted account keeps its name and its quota until it is purged.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from connectors.azure.ids import check
from connectors.azure.session import DONE, AzureSession, Operation, shaped, word
from connectors.errors import PermanentError

KIND, SKU = "OpenAI", "S0"
ENABLED, DISABLED = "Enabled", "Disabled"
NO_TAGS: Mapping[str, str] = {}
IN_GROUP = re.compile(r"/resourceGroups/([^/]+)/", re.IGNORECASE)


@dataclass(frozen=True)
class Account:
    """An account of Azure OpenAI; `endpoint` is where its models are called, `is_open` whether from anywhere."""

    id: str
    name: str
    location: str
    endpoint: str
    state: str
    is_open: bool
    has_keys: bool

    @classmethod
    def of(cls, told: Any) -> "Account":
        """What the SDK gives for one."""
        said = told.properties
        return cls(
            id=str(told.id),
            name=str(told.name),
            location=str(told.location),
            endpoint=str(said.endpoint or ""),
            state=word(said.provisioning_state),
            is_open=word(said.public_network_access) != DISABLED,
            has_keys=not said.disable_local_auth,
        )


@dataclass(frozen=True)
class DeletedAccount:
    """An account that is deleted and not purged."""

    name: str
    location: str
    resource_group: str
    purged_at: datetime | None


@dataclass(frozen=True)
class Deployment:
    """A model in an account; `sku` is how it is deployed, such as Standard or GlobalStandard."""

    name: str
    model: str
    version: str
    sku: str
    capacity: int
    state: str

    @classmethod
    def of(cls, told: Any) -> "Deployment":
        """What the SDK gives for one."""
        said = told.properties
        return cls(
            name=str(told.name),
            model=str(said.model.name),
            version=str(said.model.version or ""),
            sku=str(told.sku.name),
            capacity=int(told.sku.capacity or 0),
            state=word(said.provisioning_state),
        )


@dataclass(frozen=True)
class ModelUsage:
    """What is used of a quota such as `OpenAI.Standard.gpt-4o`, in thousands of tokens a minute."""

    name: str
    title: str
    used: int
    limit: int

    @property
    def left(self) -> int:
        """What may still be deployed."""
        return max(0, self.limit - self.used)


@dataclass(frozen=True)
class Model:
    """A version of a model in a region, and one way to deploy it; `quota` is the name of what that uses."""

    name: str
    version: str
    sku: str
    quota: str
    is_default: bool
    least: int
    most: int


@dataclass(frozen=True)
class AzureCognitiveServices:
    """Reads accounts, models and quota, and makes and deletes accounts and deployments; raises as `session` says."""

    session: AzureSession

    def accounts(self) -> list[Account]:
        """Return the accounts of Azure OpenAI in the subscription."""
        rows = self.session.call(lambda: list(self._client.accounts.list()))
        return [shaped(Account.of, row) for row in rows if row.kind == KIND]

    def account(self, resource_group: str, name: str) -> Account | None:
        """Return an account, None where there is none of this name."""
        check(resource_group=resource_group, account=name)
        told = self.session.read(
            lambda: self._client.accounts.get(resource_group, name)
        )
        return None if told is None else shaped(Account.of, told)

    def begin_create_account(
        self,
        resource_group: str,
        name: str,
        *,
        location: str,
        domain: str = "",
        is_open: bool = False,
        tags: Mapping[str, str] = NO_TAGS,
    ) -> Operation:
        """Make an account that is called with tokens of Entra ID alone, at `domain`; the same once more is one account.

        PermanentError with code soft_deleted (purge it first), name_taken (the domain), or quota.
        """
        from azure.mgmt.cognitiveservices import models

        check(resource_group=resource_group, account=name)
        said = models.AccountProperties(
            # Without a name of its own an account takes keys alone.
            custom_sub_domain_name=domain or name,
            public_network_access=ENABLED if is_open else DISABLED,
            disable_local_auth=True,
            network_acls=None
            if is_open
            else models.NetworkRuleSet(default_action="Deny"),
        )
        body = models.Account(
            kind=KIND,
            location=location,
            sku=models.Sku(name=SKU),
            tags=dict(tags),
            properties=said,
        )
        return self.session.begin(
            lambda polling: self._client.accounts.begin_create(
                resource_group, name, body, polling=polling
            )
        )

    def begin_delete_account(self, resource_group: str, name: str) -> Operation:
        """Delete an account with its deployments; done where there is none. Its name is free once it is purged."""
        check(resource_group=resource_group, account=name)
        return self._unless_gone(
            lambda polling: self._client.accounts.begin_delete(
                resource_group, name, polling=polling
            )
        )

    def deleted_accounts(self) -> list[DeletedAccount]:
        """Return the accounts that are deleted and not purged."""
        rows = self.session.call(lambda: list(self._client.deleted_accounts.list()))
        return [shaped(_deleted, row) for row in rows if row.kind == KIND]

    def begin_purge_account(
        self, resource_group: str, name: str, location: str
    ) -> Operation:
        """Forget a deleted account for good; done where there is none."""
        check(resource_group=resource_group, account=name, region=location)
        return self._unless_gone(
            lambda polling: self._client.deleted_accounts.begin_purge(
                location, resource_group, name, polling=polling
            )
        )

    def deployments(self, resource_group: str, account: str) -> list[Deployment]:
        """Return what is deployed in an account; nothing in one that is not there."""
        check(resource_group=resource_group, account=account)
        rows = self.session.read(
            lambda: list(self._client.deployments.list(resource_group, account))
        )
        return [shaped(Deployment.of, row) for row in rows or ()]

    def deployment(
        self, resource_group: str, account: str, name: str
    ) -> Deployment | None:
        """Return a deployment, None where there is none of this name."""
        check(resource_group=resource_group, account=account, deployment=name)
        told = self.session.read(
            lambda: self._client.deployments.get(resource_group, account, name)
        )
        return None if told is None else shaped(Deployment.of, told)

    def begin_deploy(
        self,
        resource_group: str,
        account: str,
        name: str,
        *,
        model: str,
        version: str,
        sku: str,
        capacity: int,
    ) -> Operation:
        """Deploy a model, or change its capacity; an account does one such thing at a time (TemporaryError).

        PermanentError with code quota, or model_not_available.
        """
        from azure.mgmt.cognitiveservices import models

        check(resource_group=resource_group, account=account, deployment=name)
        body = models.Deployment(
            sku=models.Sku(name=sku, capacity=capacity),
            properties=models.DeploymentProperties(
                model=models.DeploymentModel(format=KIND, name=model, version=version)
            ),
        )
        return self.session.begin(
            lambda polling: self._client.deployments.begin_create_or_update(
                resource_group, account, name, body, polling=polling
            )
        )

    def begin_delete_deployment(
        self, resource_group: str, account: str, name: str
    ) -> Operation:
        """Take a model out of an account; done where it is not in it."""
        check(resource_group=resource_group, account=account, deployment=name)
        return self._unless_gone(
            lambda polling: self._client.deployments.begin_delete(
                resource_group, account, name, polling=polling
            )
        )

    def usages(self, location: str) -> list[ModelUsage]:
        """Return what is used of the quota of each model in a region."""
        check(region=location)
        rows = self.session.call(lambda: list(self._client.usages.list(location)))
        # Among them are numbers of accounts.
        found = [shaped(_usage, row) for row in rows]
        return [
            one
            for one in found
            if one.name.startswith(f"{KIND}.") and not one.name.endswith("Count")
        ]

    def models(self, location: str) -> list[Model]:
        """Return what can be deployed in a region, a row for each version and way to deploy it."""
        check(region=location)
        rows = self.session.call(lambda: list(self._client.models.list(location)))
        return [one for row in rows if row.kind == KIND for one in shaped(_models, row)]

    def left(self, location: str, model: str, version: str) -> dict[str, int]:
        """Return what may still be deployed of a version of a model, by how it is deployed."""
        check(region=location)
        rows = self.session.call(
            lambda: list(
                self._client.location_based_model_capacities.list(
                    location, KIND, model, version
                )
            )
        )
        return dict(shaped(_capacity, row) for row in rows)

    def _unless_gone(self, start: Callable[..., object]) -> Operation:
        try:
            return self.session.begin(start)
        except PermanentError as error:
            if error.code in ("not_found", "no_parent"):
                return DONE
            raise

    @property
    def _client(self) -> Any:
        from azure.mgmt.cognitiveservices import CognitiveServicesManagementClient

        return self.session.client(CognitiveServicesManagementClient)


def _deleted(told: Any) -> DeletedAccount:
    group = IN_GROUP.search(str(told.id))
    if group is None:
        raise ValueError(told.id)
    purged = told.properties.scheduled_purge_date
    return DeletedAccount(
        name=str(told.name),
        location=str(told.location),
        resource_group=group[1],
        purged_at=datetime.fromisoformat(purged) if purged else None,
    )


def _usage(told: Any) -> ModelUsage:
    name = str(told.name.value)
    return ModelUsage(
        name,
        str(told.name.localized_value or name),
        int(told.current_value or 0),
        int(told.limit or 0),
    )


def _models(told: Any) -> list[Model]:
    one = told.model
    return [
        Model(
            name=str(one.name),
            version=str(one.version),
            sku=str(sku.name),
            quota=str(sku.usage_name or f"{KIND}.{sku.name}.{one.name}"),
            is_default=bool(one.is_default_version),
            least=int((sku.capacity and sku.capacity.minimum) or 1),
            most=int((sku.capacity and sku.capacity.maximum) or one.max_capacity or 0),
        )
        for sku in one.skus or ()
    ]


def _capacity(told: Any) -> tuple[str, int]:
    return str(told.properties.sku_name), int(told.properties.available_capacity or 0)
