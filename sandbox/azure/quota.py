"""Microsoft.Quota: limits and use once more, and requests for more that are granted, refused, or take days."""

import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from sandbox.azure.bodies import REGIONS
from sandbox.azure.errors import ArmError, busy, invalid, no_such_resource
from sandbox.azure.operations import FAILED, IN_PROGRESS, SUCCEEDED
from sandbox.azure.routing import Answer, Call, Route
from sandbox.azure.sizes import TITLES
from sandbox.azure.state import Resource, State
from sandbox.azure.usage import Usage
from sandbox.azure_world import AzureSpec

VERSION = "2025-09-01"
SCOPE = "/subscriptions/{subscription}/providers/Microsoft.Compute/locations/{location}/providers/Microsoft.Quota"
MOST = 100_000
PAGE = 20
# How long people at Microsoft take for what is not granted by a program.
DAYS = 3 * 86_400.0
REFUSED = {
    "code": "ResourceNotAvailableForOffer",
    "message": "The resource is currently unavailable in the location for the offer type.",
}


@dataclass(frozen=True)
class Quota:
    """Shows limits, and takes requests; `seconds` is how long one takes that a program grants."""

    state: State
    usage: Usage
    spec: AzureSpec

    def routes(self) -> list[Route]:
        """The operations of this module."""
        return [
            Route("GET", SCOPE + "/quotas", VERSION, self.limits),
            Route("GET", SCOPE + "/quotas/{name}", VERSION, self.limit),
            Route("PUT", SCOPE + "/quotas/{name}", VERSION, self.put),
            Route("PATCH", SCOPE + "/quotas/{name}", VERSION, self.put),
            Route("GET", SCOPE + "/usages", VERSION, self.usages),
            Route("GET", SCOPE + "/usages/{name}", VERSION, self.one_usage),
            Route("GET", SCOPE + "/quotaRequests", VERSION, self.requests),
            Route("GET", SCOPE + "/quotaRequests/{request}", VERSION, self.request),
            Route(
                "GET", SCOPE + "/operationsStatus/{request}", VERSION, self.operation
            ),
        ]

    def limits(self, call: Call) -> Answer:
        """Answer with every limit of a region."""
        return Answer(200, {"value": [self._limit(call, name) for name in TITLES]})

    def limit(self, call: Call) -> Answer:
        """Answer with one."""
        return Answer(200, self._limit(call, _name(call)))

    def usages(self, call: Call) -> Answer:
        """Answer with every use of a region."""
        return Answer(200, {"value": [self._usage(call, name) for name in TITLES]})

    def one_usage(self, call: Call) -> Answer:
        """Answer with one."""
        return Answer(200, self._usage(call, _name(call)))

    def put(self, call: Call) -> Answer:
        """Ask for another limit."""
        name, region, said = (
            _name(call),
            _region(call),
            call.body().get("properties") or {},
        )
        limit = said.get("limit") or {}
        value = limit.get("value")
        if (
            limit.get("limitObjectType") != "LimitValue"
            or type(value) is not int
            or not 0 <= value <= MOST
        ):
            raise invalid(
                "The quota limit of the request is invalid.", "InvalidQuotaLimit"
            )
        if any(
            row["status"] == IN_PROGRESS and row["name"] == name
            for row in self._rows(region)
        ):
            raise ArmError(
                409,
                "QuotaRequestInProgress",
                f"A quota request for '{name}' is in progress.",
            )
        request_id, now = str(uuid.uuid4()), self.state.clock.now()
        wait, outcome = self._outcome(region, name)
        self._table[request_id] = {
            "region": region,
            "name": name,
            "limit": value,
            "begun": now,
            "due": now + wait,
            "outcome": outcome,
            "status": IN_PROGRESS,
        }
        self.state.touch()
        self.settle()
        return Answer(202, None, _pending(call, request_id))

    def operation(self, call: Call) -> Answer:
        """Answer 202 until a request is decided, then with what was."""
        request_id = self._need(call)
        if self._table[request_id]["status"] == IN_PROGRESS:
            return Answer(202, None, _pending(call, request_id))
        return Answer(200, self._request(call, request_id))

    def requests(self, call: Call) -> Answer:
        """Answer with the requests of a region, the newest first, in pages."""
        region, skip = _region(call), int(call.query.get("$skiptoken") or 0)
        ids = [
            request_id
            for request_id, row in self._table.items()
            if row["region"] == region
        ]
        ids.sort(key=lambda request_id: -float(self._table[request_id]["begun"]))
        page = [
            self._request(call, request_id) for request_id in ids[skip : skip + PAGE]
        ]
        body: dict[str, Any] = {"value": page}
        if len(ids) > skip + PAGE:
            query = f"api-version={VERSION}&$skiptoken={skip + PAGE}"
            body["nextLink"] = f"{call.base}{_scope(call)}/quotaRequests?{query}"
        return Answer(200, body)

    def request(self, call: Call) -> Answer:
        """Answer with one request."""
        return Answer(200, self._request(call, self._need(call)))

    def decide(self, request_id: str, *, is_granted: bool) -> None:
        """Decide a request now, as people at Microsoft do; raise ArmError for one that is decided or unknown."""
        row = self._table.get(request_id)
        if row is None or row["status"] != IN_PROGRESS:
            raise (
                busy()
                if row
                else no_such_resource("Microsoft.Quota/quotaRequests", request_id, "")
            )
        row["outcome"] = "granted" if is_granted else "refused"
        row["due"] = self.state.clock.now()
        self.settle()

    def settle(self) -> None:
        """Decide what is due."""
        for row in self._table.values():
            if row["status"] == IN_PROGRESS and row["due"] <= self.state.clock.now():
                is_granted = row["outcome"] != "refused"
                row["status"] = SUCCEEDED if is_granted else FAILED
                if is_granted:
                    self.usage.raise_limit(
                        row["region"], row["name"], int(row["limit"])
                    )
                self.state.touch()

    @property
    def _table(self) -> dict[str, dict[str, Any]]:
        return self.state.table("quota requests")

    def _need(self, call: Call) -> str:
        request_id = call.part("request").lower()
        if request_id not in self._table or self._table[request_id][
            "region"
        ] != _region(call):
            raise no_such_resource("Microsoft.Quota/quotaRequests", request_id, "")
        return request_id

    def _rows(self, region: str) -> list[Mapping[str, Any]]:
        return [row for row in self._table.values() if row["region"] == region]

    def _outcome(self, region: str, name: str) -> tuple[float, str]:
        key = (region, name.lower())
        said = next(
            (
                one.increases
                for one in self.spec.limits
                if (one.region, one.name.lower()) == key
            ),
            "granted",
        )
        return (DAYS, "granted") if said == "days" else (1.0, said)

    def _limit(self, call: Call, name: str) -> Resource:
        value = self.usage.limit(_region(call), name)
        said = {
            "limit": {
                "limitObjectType": "LimitValue",
                "value": value,
                "limitType": "Independent",
            }
        }
        return _row(call, "quotas", name, said)

    def _usage(self, call: Call, name: str) -> Resource:
        return _row(
            call,
            "usages",
            name,
            {"usages": {"value": self.usage.used(_region(call))[name]}},
        )

    def _request(self, call: Call, request_id: str) -> Resource:
        row = self._table[request_id]
        words = {
            IN_PROGRESS: "Request is being processed.",
            SUCCEEDED: "Request completed",
            FAILED: REFUSED["message"],
        }[row["status"]]
        at = (
            datetime.fromtimestamp(row["begun"], UTC).isoformat().replace("+00:00", "Z")
        )
        part = {
            "name": {"value": row["name"], "localizedValue": TITLES[row["name"]]},
            "limit": {"limitObjectType": "LimitValue", "value": row["limit"]},
            "message": words,
            "provisioningState": row["status"],
            "subRequestId": str(uuid.uuid5(uuid.UUID(request_id), "part")),
        }
        said = {
            "provisioningState": row["status"],
            "message": words,
            "requestSubmitTime": at,
            "value": [part],
        }
        said |= {"error": REFUSED} if row["status"] == FAILED else {}
        kind = "Microsoft.Quota/quotaRequests"
        return {
            "id": f"{_scope(call)}/quotaRequests/{request_id}",
            "name": request_id,
            "type": kind,
            "properties": said,
        }


def _pending(call: Call, request_id: str) -> dict[str, str]:
    where = (
        f"{call.base}{_scope(call)}/operationsStatus/{request_id}?api-version={VERSION}"
    )
    return {"Location": where, "Retry-After": "30"}


def _row(call: Call, kind: str, name: str, said: dict[str, Any]) -> Resource:
    said |= {
        "name": {"value": name, "localizedValue": TITLES[name]},
        "unit": "Count",
        "isQuotaApplicable": True,
        "properties": {},
    }
    at = f"{_scope(call)}/{kind}/{name}"
    return {
        "id": at,
        "name": name,
        "type": f"Microsoft.Quota/{kind}",
        "properties": said,
    }


def _scope(call: Call) -> str:
    at = f"/subscriptions/{call.part('subscription')}/providers/Microsoft.Compute"
    return f"{at}/locations/{_region(call)}/providers/Microsoft.Quota"


def _region(call: Call) -> str:
    region = call.part("location").lower()
    if region not in REGIONS:
        raise invalid(f"The location '{region}' is invalid.", "InvalidLocation")
    return region


def _name(call: Call) -> str:
    asked = call.part("name").lower()
    name = next((name for name in TITLES if name.lower() == asked), None)
    if name is None:
        raise ArmError(
            404, "InvalidResourceName", f"Invalid resource name '{call.part('name')}'."
        )
    return name
