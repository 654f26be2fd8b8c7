"""The authorize endpoint: checks the request, asks who you are, answers with a code."""

import secrets
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import parse_qsl, urlencode, urlsplit

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from sandbox.entra import pages
from sandbox.entra.errors import Refusal
from sandbox.entra.tokens import Issuer, login_hint
from sandbox.world import Person

CODE_LIFETIME = 600
LOOPBACK = ("localhost", "127.0.0.1")


@dataclass(frozen=True)
class Grant:
    """What a code stands for."""

    person: Person
    redirect: str
    challenge: str
    nonce: str | None
    scope: str
    until: float


@dataclass
class Codes:
    """Codes given out; each is worth one token."""

    open: dict[str, Grant] = field(default_factory=dict)
    used: set[str] = field(default_factory=set)

    def issue(self, grant: Grant) -> str:
        """Return a fresh code."""
        code = f"1.{secrets.token_urlsafe(48)}"
        self.open[code] = grant
        return code

    def redeem(self, code: str) -> Grant:
        """Return what the code stands for, once; raise Refusal for used, old and unknown codes."""
        if code in self.used:
            raise Refusal("invalid_grant", 54005)
        grant = self.open.pop(code, None)
        if grant is None:
            raise Refusal("invalid_grant", 9002313)
        self.used.add(code)
        if grant.until < time.time():
            raise Refusal("invalid_grant", 70008)
        return grant


def is_registered(redirect: str) -> bool:
    """Tell whether a redirect URI is one of the application's: any port and path on loopback."""
    parts = urlsplit(redirect)
    plain = not parts.fragment and parts.username is None
    return parts.scheme in ("http", "https") and parts.hostname in LOOPBACK and plain


@dataclass
class AuthorizeEndpoint:
    """GET shows who can sign in, POST says who does."""

    issuer: Issuer
    codes: Codes

    async def answer(self, request: Request) -> Response:
        """Show the page, or send the browser back with a code or an error."""
        query = dict(request.query_params)
        form: dict[str, str] = {}
        if request.method == "POST":
            form = dict(parse_qsl((await request.body()).decode("utf-8", "replace")))
        try:
            self._check_application(query)
        except Refusal as refusal:
            return pages.refused(refusal.body()["error_description"])
        try:
            self._check_parameters(query)
            return self._decide(query, form) if form else self._ask(query)
        except Refusal as refusal:
            body = refusal.body()
            return _back(
                query, {key: body[key] for key in ("error", "error_description")}
            )

    def _check_application(self, query: Mapping[str, str]) -> None:
        client, redirect = query.get("client_id", ""), query.get("redirect_uri", "")
        if client != self.issuer.client:
            raise Refusal(
                "unauthorized_client", 700016, client=client, tenant=self.issuer.tenant
            )
        if not is_registered(redirect):
            raise Refusal("invalid_request", 50011, client=client, redirect=redirect)

    def _check_parameters(self, query: Mapping[str, str]) -> None:
        if query.get("response_type") != "code":
            raise Refusal(
                "unsupported_response_type", 700051, type=query.get("response_type", "")
            )
        if not query.get("scope"):
            raise Refusal("invalid_request", 900144, field="scope")
        if query.get("response_mode", "query") != "query":
            raise Refusal("invalid_request", 9002313)
        if (
            query.get("code_challenge_method") != "S256"
            or len(query.get("code_challenge", "")) != 43
        ):
            raise Refusal("invalid_request", 9002325)
        if query.get("prompt") == "none":
            raise Refusal("login_required", 50058)

    def _ask(
        self, query: Mapping[str, str], refusal: str = "", status: int = 200
    ) -> Response:
        people = self.issuer.directory.people.values()
        return pages.sign_in(
            people, self._hinted(query.get("login_hint", "")), refusal, status
        )

    def _hinted(self, hint: str) -> Person | None:
        people = self.issuer.directory.people.values()
        return next(
            (
                person
                for person in people
                if hint.lower() == person.mail or hint == login_hint(person)
            ),
            None,
        )

    def _decide(self, query: Mapping[str, str], form: Mapping[str, str]) -> Response:
        if form.get("cancel"):
            raise Refusal("access_denied", 65004)
        person = self.issuer.directory.people.get(form.get("person", ""))
        if person is None:
            unknown = Refusal(
                "invalid_grant",
                50034,
                user=form.get("person", ""),
                tenant=self.issuer.tenant,
            )
            return self._ask(query, str(unknown), 403)
        if not self.issuer.directory.enabled[person.oid]:
            return self._ask(
                query, f"{Refusal('invalid_grant', 50057)} ({person.name})", 403
            )
        grant = Grant(
            person=person,
            redirect=query["redirect_uri"],
            challenge=query["code_challenge"],
            nonce=query.get("nonce"),
            scope=query["scope"],
            until=time.time() + CODE_LIFETIME,
        )
        return _back(query, {"code": self.codes.issue(grant)})


def _back(query: Mapping[str, str], answer: dict[str, str]) -> Response:
    if "state" in query:
        answer["state"] = query["state"]
    redirect = query["redirect_uri"]
    joiner = "&" if urlsplit(redirect).query else "?"
    return RedirectResponse(
        f"{redirect}{joiner}{urlencode(answer)}", 302, {"Cache-Control": "no-store"}
    )
