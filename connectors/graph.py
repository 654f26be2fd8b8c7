"""Microsoft Graph: people, groups and managers. The only importer of requests."""

from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote
from zoneinfo import ZoneInfo

import requests

from connectors.errors import PermanentError, TemporaryError
from connectors.mail import AN_ADDRESS
from connectors.patience import seconds

GRAPH_SCOPE = "https://graph.microsoft.com/.default"
TIMEOUT = (3.0, 10.0)
EVENTUAL = {"ConsistencyLevel": "eventual"}
PERSON = "id,displayName,mail,userPrincipalName,accountEnabled"
MOST_CHECKED = 20
MOST_PRESENCES = 650
PAGE = 100
LARGEST_PAGE = 999
TEMPORARY = frozenset({408, 423, 429, 500, 502, 503, 504, 509})
UNKNOWN = frozenset({"forbidden", "bad_request"})
OUT_OF_OFFICE = "outofoffice"
LONGEST_ADDRESS = 254
GUEST = "#ext#"
CODES = {400: "bad_request", 401: "unauthorized", 403: "forbidden", 404: "not_found"}

Row = dict[str, Any]


@dataclass(frozen=True)
class Group:
    """A group of the directory; only `oid` identifies it, the rest is for reading."""

    oid: str
    name: str
    description: str = ""


@dataclass(frozen=True)
class Person:
    """Somebody in the directory; `email` is empty for who has no address, `enabled` False for blocked accounts."""

    oid: str
    name: str
    email: str = ""
    enabled: bool = True


class BoundedSession(requests.Session):
    """A session that never waits for ever and takes neither proxies nor CA bundles from the environment."""

    def __init__(self, ca_file: str | None) -> None:
        super().__init__()
        self.trust_env = False
        self.verify = ca_file or True

    def request(self, *args: Any, **kwargs: Any) -> requests.Response:
        """Send a request with a timeout and without following redirects."""
        if kwargs.get("timeout") is None:
            kwargs["timeout"] = TIMEOUT
        kwargs["allow_redirects"] = False
        return super().request(*args, **kwargs)


@dataclass(frozen=True)
class Absence:
    """Whether somebody is out of office; `until` None when they are not, or when nobody said until when."""

    is_away: bool
    until: datetime | None = None


class Graph:
    """Reads the directory as the application.

    `token` returns an access token for Graph; `renew` returns one that was not seen before, asked for once
    when Graph answers 401. Every method raises TemporaryError (network, 429, 5xx; `retry_after` in seconds)
    or PermanentError (`code` forbidden, unauthorized, bad_request).
    """

    def __init__(
        self,
        token: Callable[[], str],
        base_url: str,
        ca_file: str | None = None,
        renew: Callable[[], str] | None = None,
    ) -> None:
        self._token = token
        self._renew = renew or token
        self._base = base_url.rstrip("/")
        self._session = BoundedSession(ca_file)

    def groups_of(self, user_oid: str) -> set[str]:
        """Return the ids of all groups of a person, nested ones included.

        Raises PermanentError `not_found` for an unknown person: that is not the same as being in no group.
        """
        body = {"securityEnabledOnly": True}
        answer = self._call(
            "POST", f"/users/{quote(user_oid, safe='')}/getMemberObjects", json=body
        )
        if answer is None:
            raise PermanentError(
                "Graph does not know whose groups were asked for", code="not_found"
            )
        return {str(oid) for oid in answer["value"]}

    def tenant_ids(self) -> frozenset[str] | None:
        """Return the ids of the tenant that answers, in small letters; None where reading it was not granted.

        An address that answers but knows no tenant returns none.
        """
        try:
            answer = self._call("GET", "/organization", params={"$select": "id"})
        except PermanentError as error:
            if error.code != "forbidden":
                raise
            return None
        return (
            frozenset(str(row["id"]).lower() for row in answer.get("value", ()))
            if answer
            else frozenset()
        )

    def is_member(self, user_oid: str, group_oids: Iterable[str]) -> bool:
        """Tell whether a person is in any of the groups, directly or through another group."""
        asked = list(dict.fromkeys(group_oids))
        path = f"/users/{quote(user_oid, safe='')}/checkMemberGroups"
        for start in range(0, len(asked), MOST_CHECKED):
            answer = self._call(
                "POST", path, json={"groupIds": asked[start : start + MOST_CHECKED]}
            )
            if answer and answer["value"]:
                return True
        return False

    def find_groups(self, text: str, limit: int = 20) -> list[Group]:
        """Return groups with words that start like the words of `text`, by name; none for a blank text."""
        wanted = " ".join(text.split())
        if not wanted:
            return []
        escaped = wanted.replace("\\", "\\\\").replace('"', '\\"')
        params = {
            "$search": f'"displayName:{escaped}"',
            "$select": "id,displayName,description",
            "$top": str(limit),
        }
        answer = self._call("GET", "/groups", params=params, headers=EVENTUAL)
        found = [_group(row) for row in answer["value"]] if answer else []
        return sorted(found, key=lambda group: group.name.casefold())

    def group(self, oid: str) -> Group | None:
        """Return a group, or None when the directory has none with this id."""
        params = {"$select": "id,displayName,description"}
        answer = self._call("GET", f"/groups/{quote(oid, safe='')}", params=params)
        return _group(answer) if answer else None

    def members(self, group_oid: str) -> Iterator[Person]:
        """Yield everybody in a group or in one inside it, page by page; nobody for an unknown group."""
        path = f"/groups/{quote(group_oid, safe='')}/transitiveMembers/microsoft.graph.user"
        for row in self._rows(path, {"$select": PERSON, "$top": str(PAGE)}):
            yield _person(row)

    def app_roles(self, client_id: str) -> dict[str, frozenset[str]]:
        """Return the app roles of an application, by value, that each person and group is assigned, by object id.

        Needs Application.Read.All; raises PermanentError `not_found` for an application that the tenant does not have.
        """
        path = f"/servicePrincipals(appId='{quote(client_id, safe='')}')"
        described = self._call("GET", path, params={"$select": "id,appRoles"})
        if described is None:
            raise PermanentError(
                "Graph knows no application of this client id", code="not_found"
            )
        # What is switched off is in no token, and what has no value is access alone.
        roles = (
            row
            for row in described["appRoles"]
            if row.get("isEnabled") is not False and row.get("value")
        )
        values = {row["id"]: str(row["value"]) for row in roles}
        found: dict[str, set[str]] = {}
        for row in self._rows(f"{path}/appRoleAssignedTo", {"$top": str(LARGEST_PAGE)}):
            if row["appRoleId"] in values:
                found.setdefault(str(row["principalId"]).lower(), set()).add(
                    values[row["appRoleId"]]
                )
        return {oid: frozenset(assigned) for oid, assigned in found.items()}

    def people_with_role(
        self, client_id: str, values: Collection[str]
    ) -> Iterator[Person]:
        """Yield everybody to whom Entra ID gives one of these app roles: themselves, or as a group's direct member.

        Somebody may come more than once. Raises as `app_roles` does.
        """
        for oid, assigned in self.app_roles(client_id).items():
            if assigned.isdisjoint(values):
                continue
            person = self.person(oid)
            if person is not None:
                yield person
                continue
            path = f"/groups/{quote(oid, safe='')}/members/microsoft.graph.user"
            for row in self._rows(path, {"$select": PERSON, "$top": str(PAGE)}):
                yield _person(row)

    def person(self, oid: str) -> Person | None:
        """Return a person, blocked or not, or None when the directory has none with this id."""
        answer = self._call(
            "GET", f"/users/{quote(oid, safe='')}", params={"$select": PERSON}
        )
        return _person(answer) if answer else None

    def manager_chain(self, oid: str) -> list[Person] | None:
        """Return the manager, the manager's manager and so on; None for an unknown person, who has none or some."""
        params = {
            "$expand": f"manager($levels=max;$select={PERSON})",
            "$select": "id,displayName",
            "$count": "true",
        }
        answer = self._call(
            "GET", f"/users/{quote(oid, safe='')}", params=params, headers=EVENTUAL
        )
        if answer is None:
            return None
        chain: list[Person] = []
        while answer and (answer := answer.get("manager")):
            chain.append(_person(answer))
        return chain

    def away(self, oids: Iterable[str], *, now: datetime) -> dict[str, Absence]:
        """Return who is out of office and who is not; whoever is left out of the answer is not known about.

        Presence is asked first. Mailboxes are asked for an end, and where presence knows nothing. A permission
        that was not granted (Presence.Read.All, MailboxSettings.Read) makes things unknown, and is no error.
        """
        asked = list(dict.fromkeys(oids))
        seen = self._presences(asked)
        found: dict[str, Absence] = {}
        mailboxes = True
        for oid in asked:
            if seen.get(oid) is False:
                found[oid] = Absence(is_away=False)
                continue
            reply = None
            if mailboxes:
                try:
                    reply = self._automatic_replies(oid, now=now)
                except PermanentError as error:
                    if error.code not in UNKNOWN:
                        raise
                    # What is forbidden for one mailbox is forbidden for all of them.
                    mailboxes = error.code != "forbidden"
            if oid in seen:
                found[oid] = Absence(is_away=True, until=reply.until if reply else None)
            elif reply:
                found[oid] = reply
        return found

    def _presences(self, oids: list[str]) -> dict[str, bool]:
        """Who is out of office by their presence; without those whose presence is unknown."""
        found: dict[str, bool] = {}
        for start in range(0, len(oids), MOST_PRESENCES):
            body = {"ids": oids[start : start + MOST_PRESENCES]}
            try:
                answer = self._call(
                    "POST", "/communications/getPresencesByUserId", json=body
                )
            except PermanentError as error:
                if error.code not in UNKNOWN:
                    raise
                return found
            for row in answer["value"] if answer else ():
                if (out := _is_out(row)) is not None:
                    found[str(row["id"])] = out
        return found

    def _automatic_replies(self, oid: str, *, now: datetime) -> Absence | None:
        """What somebody's automatic replies say; None for who has no mailbox."""
        path = f"/users/{quote(oid, safe='')}/mailboxSettings/automaticRepliesSetting"
        answer = self._call("GET", path, headers={"Prefer": 'outlook.timezone="UTC"'})
        return _absence(answer, now=now) if answer else None

    def _rows(self, path: str, params: dict[str, str]) -> Iterator[Row]:
        """Every row of a list, page by page; none for what does not exist."""
        answer = self._call("GET", path, params=params)
        while answer:
            yield from answer["value"]
            following = answer.get("@odata.nextLink")
            answer = (
                self._call("GET", self._within(str(following))) if following else None
            )

    def _within(self, link: str) -> str:
        """Refuse pages elsewhere: they would be given our token."""
        if not link.startswith(f"{self._base}/"):
            raise PermanentError(
                "Graph named a next page on another server", code="foreign_link"
            )
        return link.removeprefix(self._base)

    def _call(self, method: str, path: str, **options: Any) -> Row | None:
        response = self._send(method, path, self._token(), options)
        if response.status_code == 401:
            response = self._send(method, path, self._renew(), options)
        if response.status_code == 404:
            return None
        if response.status_code != 200:
            raise _failure(response)
        try:
            answer = response.json()
        except ValueError as error:
            raise TemporaryError("Graph gave an answer that is not JSON") from error
        if not isinstance(answer, dict):
            raise TemporaryError("Graph gave an answer of an unknown shape")
        return answer

    def _send(
        self, method: str, path: str, token: str, options: Row
    ) -> requests.Response:
        headers = {"Authorization": f"Bearer {token}", **options.get("headers", {})}
        try:
            return self._session.request(
                method, f"{self._base}{path}", **{**options, "headers": headers}
            )
        except requests.RequestException as error:
            raise TemporaryError(
                f"Graph cannot be reached: {type(error).__name__}"
            ) from error


def _failure(response: requests.Response) -> TemporaryError | PermanentError:
    said: Row = {}
    with suppress(ValueError, AttributeError):
        said = response.json().get("error") or {}
    message = f"Graph answered {response.status_code} {said.get('code', '')}: {said.get('message', '')}"
    if response.status_code in TEMPORARY:
        return TemporaryError(
            message, retry_after=seconds(response.headers.get("Retry-After"))
        )
    return PermanentError(
        message, code=CODES.get(response.status_code, f"http_{response.status_code}")
    )


def _group(row: Row) -> Group:
    return Group(
        str(row["id"]),
        str(row.get("displayName") or ""),
        str(row.get("description") or ""),
    )


def _person(row: Row) -> Person:
    enabled = row.get("accountEnabled") is not False
    return Person(
        str(row["id"]), str(row.get("displayName") or ""), _address(row), enabled
    )


def _address(row: Row) -> str:
    """Where mail reaches somebody: their mail, else a sign-in name that is an address; a guest's never is."""
    for given in (str(row.get("mail") or ""), str(row.get("userPrincipalName") or "")):
        if (
            len(given) <= LONGEST_ADDRESS
            and AN_ADDRESS.fullmatch(given)
            and GUEST not in given.lower()
        ):
            return given
    return ""


def _is_out(row: Row) -> bool | None:
    """Whether a presence says out of office; None where it knows nothing, as of people without Teams."""
    # Graph's own documentation writes the words with small and with capital letters.
    words = {
        str(row.get(name) or "").casefold() for name in ("availability", "activity")
    }
    if (
        OUT_OF_OFFICE in words
        or (row.get("outOfOfficeSettings") or {}).get("isOutOfOffice") is True
    ):
        return True
    return None if "presenceunknown" in words else False


def _absence(row: Row, *, now: datetime) -> Absence:
    status = row.get("status")
    if status == "alwaysEnabled":
        return Absence(is_away=True)
    if status != "scheduled":
        return Absence(is_away=False)
    start, end = (
        _moment(row.get(name))
        for name in ("scheduledStartDateTime", "scheduledEndDateTime")
    )
    is_away = (start is None or start <= now) and (end is None or now < end)
    return Absence(is_away, end if is_away else None)


def _moment(given: Any) -> datetime | None:
    """A dateTimeTimeZone; None when it is absent or in a zone that only Windows has a name for."""
    with suppress(AttributeError, KeyError, OSError, ValueError):
        zone = given.get("timeZone") or "UTC"
        read = datetime.fromisoformat(str(given["dateTime"]))
        return (
            read if read.tzinfo else read.replace(tzinfo=ZoneInfo(zone)).astimezone(UTC)
        )
    return None
