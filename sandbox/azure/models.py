"""Models that can be deployed, and what of their quota is left: in thousands of tokens a minute."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from sandbox.azure.errors import invalid
from sandbox.azure.routing import Answer, Call, Route
from sandbox.azure.state import Resource, State
from sandbox.azure.usage import Usage
from sandbox.azure_world import AzureSpec

KIND = "Microsoft.CognitiveServices/accounts"
DELETED = "Microsoft.CognitiveServices/locations/resourceGroups/deletedAccounts"
DEPLOYMENT = "Microsoft.CognitiveServices/accounts/deployments"
VERSION = "2025-09-01"
AT = "/subscriptions/{subscription}/providers/Microsoft.CognitiveServices/locations/{location}"
ACCOUNTS = "OpenAI.S0.AccountCount"
FORMAT = "OpenAI"


@dataclass(frozen=True)
class Model:
    """A version of a model and how it can be deployed."""

    name: str
    version: str
    skus: tuple[str, ...]
    regions: tuple[str, ...] = ("eastus", "westeurope")


MODELS = (
    Model("gpt-4o", "2024-08-06", ("Standard", "GlobalStandard")),
    Model("gpt-4o", "2024-11-20", ("Standard", "GlobalStandard"), ("eastus",)),
    Model("gpt-4o-mini", "2024-07-18", ("Standard", "GlobalStandard")),
    Model("gpt-4.1-mini", "2025-04-14", ("GlobalStandard",)),
    Model("text-embedding-3-large", "1", ("Standard",)),
)


@dataclass(frozen=True)
class Models:
    """Shows models, quota and what is left of it."""

    state: State
    usage: Usage
    spec: AzureSpec

    def routes(self) -> list[Route]:
        """The operations of this module."""
        return [
            Route("GET", AT + "/usages", VERSION, self.usages),
            Route("GET", AT + "/models", VERSION, self.models),
            Route("GET", AT + "/modelCapacities", VERSION, self.capacities),
        ]

    def usages(self, call: Call) -> Answer:
        """Answer with the use and limit of each model's quota."""
        region = call.part("location").lower()
        used, rows = self.used(region), []
        for name in self._names(region):
            title = name if name == ACCOUNTS else title_of(name)
            rows.append(
                {
                    "unit": "Count",
                    "name": {"value": name, "localizedValue": title},
                    "currentValue": float(used[name]),
                    "limit": float(self.usage.limit(region, name)),
                }
            )
        return Answer(200, {"value": rows})

    def models(self, call: Call) -> Answer:
        """Answer with what can be deployed in a region."""
        rows = [
            _shown(model)
            for model in MODELS
            if call.part("location").lower() in model.regions
        ]
        return Answer(200, {"value": rows})

    def capacities(self, call: Call) -> Answer:
        """Answer with what is left for a version of a model, by kind of deployment."""
        region = call.part("location").lower()
        asked = tuple(
            call.query.get(key, "")
            for key in ("modelFormat", "modelName", "modelVersion")
        )
        if not all(asked):
            raise invalid(
                "modelFormat, modelName and modelVersion are required.",
                "InvalidRequest",
            )
        model = find(asked[1], asked[2], region) if asked[0] == FORMAT else None
        rows = []
        for sku in model.skus if model else ():
            name = f"{FORMAT}.{sku}.{asked[1]}"
            left = max(0, self.usage.limit(region, name) - self.used(region)[name])
            said = {
                "model": {"format": FORMAT, "name": asked[1], "version": asked[2]},
                "skuName": sku,
                "availableCapacity": float(left),
                "availableFinetuneCapacity": 0.0,
            }
            rows.append({"name": sku, "location": region, "properties": said})
        return Answer(200, {"value": rows})

    def used(self, region: str) -> Counter[str]:
        """Return what is in use of each quota; deployments of deleted accounts count until those are purged."""
        used: Counter[str] = Counter()
        for account in self._accounts(region):
            used[ACCOUNTS] += account["type"] == KIND
            for deployment in self._deployments(account):
                used[usage_of(deployment)] += int(deployment["sku"]["capacity"])
        return used

    def _accounts(self, region: str) -> Iterator[Resource]:
        for kind in (KIND, DELETED):
            yield from (
                one for one in self.state.all(kind) if one["location"] == region
            )

    def _deployments(self, account: Resource) -> list[Resource]:
        if account["type"] == DELETED:
            return list(account["sandbox"]["deployments"])
        return list(self.state.all(DEPLOYMENT, account["id"]))

    def _names(self, region: str) -> list[str]:
        return [
            one.name
            for one in self.spec.limits
            if one.region == region and one.name.startswith(FORMAT)
        ]


def find(name: str, version: str, region: str) -> Model | None:
    """Return a version of a model where it can be deployed."""
    return next(
        (
            one
            for one in MODELS
            if (one.name, one.version) == (name, version) and region in one.regions
        ),
        None,
    )


def usage_of(deployment: Resource) -> str:
    """Return the name of the quota that a deployment uses."""
    return f"{FORMAT}.{deployment['sku']['name']}.{deployment['properties']['model']['name']}"


def title_of(name: str) -> str:
    """Return the name of a quota as errors write it."""
    _, sku, model = name.split(".", 2)
    return f"Tokens Per Minute (thousands) - {model} - {sku}"


def _shown(model: Model) -> dict[str, Any]:
    skus = [
        {
            "name": sku,
            "usageName": f"{FORMAT}.{sku}.{model.name}",
            "capacity": {"minimum": 1, "maximum": 1000, "step": 1, "default": 10},
            "rateLimits": [{"key": "token", "count": 1000.0, "renewalPeriod": 60.0}],
        }
        for sku in model.skus
    ]
    said = {
        "format": FORMAT,
        "name": model.name,
        "version": model.version,
        "isDefaultVersion": model.version != "2024-11-20",
        "lifecycleStatus": "GenerallyAvailable",
        "capabilities": {"chatCompletion": "true"},
        "skus": skus,
        "maxCapacity": 1000,
    }
    return {"kind": FORMAT, "skuName": "S0", "model": said}
