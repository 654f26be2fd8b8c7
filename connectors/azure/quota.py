"""Microsoft.Quota: limits of vCPUs, and requests for more of them. The only importer of its SDK."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from connectors.azure.ids import check
from connectors.azure.session import AzureSession, shaped, word
from connectors.errors import PermanentError, TemporaryError

RequestState = Literal["open", "granted", "refused"]
STATES: dict[str, RequestState] = {
    "accepted": "open",
    "inprogress": "open",
    "succeeded": "granted",
    # Microsoft's own example of a list writes it so.
    "success": "granted",
    "failed": "refused",
    "invalid": "refused",
}
# How many of the newest requests are looked through.
LOOKED_AT = 200


@dataclass(frozen=True)
class QuotaLimit:
    """What may be used of a family in a region, in vCPUs."""

    name: str
    title: str
    limit: int


@dataclass(frozen=True)
class QuotaRequest:
    """A request for another limit; `message` is Azure's sentence about it, `code` why it was refused."""

    id: str
    name: str
    limit: int
    state: RequestState
    message: str = ""
    code: str = ""
    submitted_at: datetime | None = None

    @classmethod
    def of(cls, told: Any) -> "QuotaRequest":
        """What the SDK gives for one, which is about one limit where the portal asked for it."""
        said = told.properties
        part = (said.value or [None])[0]
        error = said.error
        return cls(
            id=str(told.name).lower(),
            name=str(part.name.value) if part else "",
            limit=int(part.limit.value) if part and part.limit else 0,
            state=STATES[word(said.provisioning_state).lower()],
            message=str(said.message or (error and error.message) or ""),
            code=str((error and error.code) or ""),
            submitted_at=said.request_submit_time,
        )


@dataclass(frozen=True)
class AzureQuota:
    """Reads limits and asks for higher ones; raises as `session` says."""

    session: AzureSession

    def limits(self, location: str) -> list[QuotaLimit]:
        """Return the limit of every family in a region, also those that cannot be raised by this way."""
        rows = self.session.call(
            lambda: list(self._client.quota.list(self._scope(location)))
        )
        return [shaped(_limit, row) for row in rows]

    def request_increase(self, location: str, name: str, limit: int) -> QuotaRequest:
        """Ask for another limit of a family, in vCPUs; Azure decides at once, after days, or refuses.

        An open request for the same limit is the answer; PermanentError(code="request_open") when one for another
        limit of this family is open.
        """
        from azure.mgmt.quota.models import (
            CurrentQuotaLimitBase,
            LimitObject,
            QuotaProperties,
            ResourceName,
        )

        open_one = self._open(location, name)
        if open_one is not None:
            if open_one.limit == limit:
                return open_one
            raise PermanentError(
                f"A request for {open_one.limit} vCPUs of {name} is open already.",
                code="request_open",
            )
        said = QuotaProperties(
            limit=LimitObject(value=limit), name=ResourceName(value=name)
        )
        body, scope = CurrentQuotaLimitBase(properties=said), self._scope(location)
        _, where = self.session.begun(
            lambda polling: self._client.quota.begin_create_or_update(
                name, scope, body, polling=polling
            )
        )
        request_id = where.partition("?")[0].rstrip("/").rpartition("/")[2]
        found = (
            self.request(location, request_id)
            if request_id
            else self._newest(location, name, limit)
        )
        if found is None:
            raise TemporaryError(
                "Azure took the request and does not list it yet.", retry_after=5.0
            )
        return found

    def request(self, location: str, request_id: str) -> QuotaRequest | None:
        """Return a request, None where there is none of this id."""
        check(request=request_id)
        scope = self._scope(location)
        told = self.session.read(
            lambda: self._client.quota_request_status.get(request_id, scope)
        )
        return None if told is None else shaped(QuotaRequest.of, told)

    def requests(self, location: str) -> list[QuotaRequest]:
        """Return the newest requests of a region, the newest first."""
        scope = self._scope(location)

        def read() -> list[Any]:
            rows = iter(self._client.quota_request_status.list(scope))
            return [row for row, _ in zip(rows, range(LOOKED_AT), strict=False)]

        return [shaped(QuotaRequest.of, row) for row in self.session.call(read)]

    def _open(self, location: str, name: str) -> QuotaRequest | None:
        rows = (row for row in self.requests(location) if row.state == "open")
        return next((row for row in rows if row.name.lower() == name.lower()), None)

    def _newest(self, location: str, name: str, limit: int) -> QuotaRequest | None:
        rows = self.requests(location)
        return next(
            (
                row
                for row in rows
                if (row.name.lower(), row.limit) == (name.lower(), limit)
            ),
            None,
        )

    def _scope(self, location: str) -> str:
        check(region=location)
        return f"subscriptions/{self.session.subscription_id}/providers/Microsoft.Compute/locations/{location}"

    @property
    def _client(self) -> Any:
        from azure.mgmt.quota import QuotaMgmtClient

        return self.session.client(QuotaMgmtClient)


def _limit(told: Any) -> QuotaLimit:
    said = told.properties
    name = str(said.name.value or told.name)
    return QuotaLimit(
        name, str(said.name.localized_value or name), int(said.limit.value)
    )
