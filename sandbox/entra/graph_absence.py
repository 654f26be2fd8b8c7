"""Graph's presence and automatic replies: who is out of office, and until when."""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from sandbox.entra.callers import Callers
from sandbox.entra.directory import Away, Directory
from sandbox.entra.graph_rows import body_of
from sandbox.entra.refusals import GraphRefusal, missing
from sandbox.world import Person

MOST_PRESENCES = 650
# What Outlook stores as the end of automatic replies that were given none.
SOME_DAY = datetime(2100, 1, 1, tzinfo=UTC)


@dataclass
class Absences:
    """Handlers of presence and of mailbox settings."""

    directory: Directory
    callers: Callers
    url: str

    async def presence(self, request: Request) -> Response:
        """GET /users/{id}/presence."""
        self.callers.need_permission(request, "Presence.Read.All")
        context = {
            "@odata.context": f"{self.url}/$metadata#users('me')/presence/$entity"
        }
        return JSONResponse({**context, **self._presence(self._person(request).oid)})

    async def presences(self, request: Request) -> Response:
        """POST /communications/getPresencesByUserId, at most 650 ids; strangers' presence is unknown."""
        self.callers.need_permission(request, "Presence.Read.All")
        asked = (await body_of(request)).get("ids")
        if (
            not isinstance(asked, list)
            or not asked
            or len(asked) > MOST_PRESENCES
            or not all(map(_is_id, asked))
        ):
            raise GraphRefusal(
                400, "BadRequest", "Invalid value specified for property 'ids'."
            )
        rows = [self._presence(oid) for oid in asked]
        return JSONResponse(
            {
                "@odata.context": f"{self.url}/$metadata#Collection(microsoft.graph.presence)",
                "value": rows,
            }
        )

    async def replies(self, request: Request) -> Response:
        """GET /users/{id}/mailboxSettings/automaticRepliesSetting."""
        self.callers.need_permission(
            request, "MailboxSettings.Read", "MailboxSettings.ReadWrite"
        )
        person = self._person(request)
        away = self.directory.away.get(person.oid)
        context = f"{self.url}/$metadata#users('{person.oid}')/mailboxSettings/automaticRepliesSetting"
        return JSONResponse({"@odata.context": context, **_setting(away)})

    async def set_replies(self, request: Request) -> Response:
        """PATCH /users/{id}/mailboxSettings with automaticRepliesSetting, by the administrator only."""
        self.callers.need_admin(request)
        person = self._person(request)
        given = (await body_of(request)).get("automaticRepliesSetting")
        if not isinstance(given, dict):
            raise GraphRefusal(
                400, "BadRequest", "Only 'automaticRepliesSetting' can be changed here."
            )
        self.directory.set_away(person.oid, _away(given))
        away = self.directory.away.get(person.oid)
        return JSONResponse({"automaticRepliesSetting": _setting(away)})

    def _presence(self, oid: str) -> dict[str, Any]:
        if oid not in self.directory.people:
            state, out = "PresenceUnknown", None
        else:
            out = {"message": None, "isOutOfOffice": self.directory.is_away(oid)}
            state = "Offline" if out["isOutOfOffice"] else "Available"
        activity = "OutOfOffice" if out and out["isOutOfOffice"] else state
        return {
            "id": oid,
            "availability": state,
            "activity": activity,
            "statusMessage": None,
            "outOfOfficeSettings": out,
        }

    def _person(self, request: Request) -> Person:
        key = request.path_params["id"]
        person = self.directory.find_person(key)
        if person is None:
            raise missing(key)
        return person


def _is_id(value: Any) -> bool:
    try:
        return bool(UUID(value))
    except (AttributeError, TypeError, ValueError):
        return False


def _setting(away: Away | None) -> dict[str, Any]:
    status = (
        "disabled" if away is None else "scheduled" if away.end else "alwaysEnabled"
    )
    start = (away and away.start) or datetime(2026, 1, 1, tzinfo=UTC)
    return {
        "status": status,
        "externalAudience": "none",
        "internalReplyMessage": "",
        "externalReplyMessage": "",
        "scheduledStartDateTime": _moment(start),
        "scheduledEndDateTime": _moment((away and away.end) or SOME_DAY),
    }


def _moment(at: datetime) -> dict[str, str]:
    return {
        "dateTime": f"{at.astimezone(UTC):%Y-%m-%dT%H:%M:%S.%f}0",
        "timeZone": "UTC",
    }


def _away(given: dict[str, Any]) -> Away | None:
    status = given.get("status")
    if status == "disabled":
        return None
    if status == "alwaysEnabled":
        return Away()
    if status != "scheduled":
        raise GraphRefusal(
            400, "BadRequest", "Requested value for 'status' was not found."
        )
    start, end = (
        _read(given.get(name))
        for name in ("scheduledStartDateTime", "scheduledEndDateTime")
    )
    if end <= start:
        raise GraphRefusal(
            400, "ErrorInvalidArgument", "The start has to be before the end."
        )
    return Away(start, end)


def _read(moment: Any) -> datetime:
    try:
        if moment["timeZone"] != "UTC":
            raise ValueError(moment["timeZone"])
        return datetime.fromisoformat(moment["dateTime"]).replace(tzinfo=UTC)
    except (KeyError, TypeError, ValueError) as error:
        raise GraphRefusal(
            400, "BadRequest", "A moment is a 'dateTime' in the 'timeZone' UTC."
        ) from error
