"""What Entra writes into tokens: ID tokens, access tokens for the API and for Graph."""

import hashlib
import time
import uuid
from dataclasses import dataclass, field
from typing import Any

from sandbox.entra.directory import Directory
from sandbox.entra.keys import SigningKey, encode
from sandbox.world import Person

GRAPH = "https://graph.microsoft.com"
ARM = "https://management.azure.com"
GRAPH_ROLES = (
    "User.Read.All",
    "GroupMember.Read.All",
    "Application.Read.All",
    "Presence.Read.All",
    "MailboxSettings.Read",
)
MOST_GROUPS = 200
LIFETIME = 3600
SERVICE_PRINCIPAL = "33333333-3333-4333-8333-333333333333"


@dataclass(frozen=True)
class Application:
    """An application of the tenant and its service principal, whose ids stand in its tokens."""

    client_id: str
    principal_id: str


@dataclass
class Issuer:
    """Mints the tokens of one tenant for one application; `api_version` is requestedAccessTokenVersion.

    `wishes` bend the next ID token of a sign-in: `claims` to set, `remove` to leave out, `headers` to set.
    """

    base: str
    directory: Directory
    key: SigningKey
    api_version: int = 2
    wishes: dict[str, Any] = field(default_factory=dict)

    @property
    def tenant(self) -> str:
        return self.directory.world.tenant_id

    @property
    def client(self) -> str:
        return self.directory.world.client_id

    @property
    def v2(self) -> str:
        """The issuer of v2 tokens."""
        return f"{self.base}/{self.tenant}/v2.0"

    @property
    def v1(self) -> str:
        """The issuer of v1 tokens, which does not depend on where Entra is served."""
        return f"https://sts.windows.net/{self.tenant}/"

    def bent(self, claims: dict[str, Any], wishes: dict[str, Any]) -> str:
        """Return the claims signed, after changing them as wished."""
        changed = {**claims, **wishes.get("claims", {})}
        for name in wishes.get("remove", ()):
            changed.pop(name, None)
        return self.key.sign(changed, wishes.get("headers"))

    def signed_id_token(self, person: Person, nonce: str | None) -> str:
        """Return the ID token of a sign-in; wishes are good for one."""
        wishes, self.wishes = self.wishes, {}
        return self.bent(self.id_token(person, nonce), wishes)

    def id_token(self, person: Person, nonce: str | None) -> dict[str, Any]:
        """Return the claims of an ID token; members of a tenant get no `email` unless the application asks for it."""
        return {
            "aud": self.client,
            **self._lifetime(self.v2),
            **self._identity(person),
            **self._groups(person),
            "name": person.name,
            "preferred_username": person.mail,
            "login_hint": login_hint(person),
            "ver": "2.0",
            **({"nonce": nonce} if nonce else {}),
        }

    def api_token(
        self,
        person: Person | None,
        scope: str,
        version: int | None = None,
        application: Application | None = None,
    ) -> dict[str, Any]:
        """Return the claims of an access token for the API.

        Without a person it is of an application: this one, or that which people sign in to.
        """
        version = version or self.api_version
        caller = application or Application(self.client, SERVICE_PRINCIPAL)
        if version == 1:
            claims = {
                "aud": f"api://{self.client}",
                **self._lifetime(self.v1),
                "ver": "1.0",
                "appid": caller.client_id,
            }
        else:
            claims = {
                "aud": self.client,
                **self._lifetime(self.v2),
                "ver": "2.0",
                "azp": caller.client_id,
            }
        claims["appidacr" if version == 1 else "azpacr"] = "1"
        if person is None:
            return {**claims, **_principal(caller.principal_id), "idtyp": "app"}
        named = "unique_name" if version == 1 else "preferred_username"
        mine = {"name": person.name, named: person.mail, "scp": scope}
        return {**claims, **self._identity(person), **self._groups(person), **mine}

    def graph_token(self, person: Person | None) -> dict[str, Any]:
        """Return the claims of an access token for Microsoft Graph."""
        claims = {
            "aud": GRAPH,
            **self._lifetime(self.v1),
            "ver": "1.0",
            "appid": self.client,
        }
        if person is None:
            return {
                **claims,
                **_principal(SERVICE_PRINCIPAL),
                "idtyp": "app",
                "roles": list(GRAPH_ROLES),
            }
        mine = {"name": person.name, "scp": "User.Read email openid profile"}
        return {**claims, **self._identity(person), **mine}

    def arm_token(self, client: str, oid: str) -> dict[str, Any]:
        """Return the claims of an access token for Azure Resource Manager, for an application of its own."""
        uti = encode(uuid.uuid4().bytes)
        claims = {
            "aud": ARM,
            **self._lifetime(self.v1),
            "ver": "1.0",
            "appid": client,
            "appidacr": "1",
        }
        return {**claims, "idtyp": "app", "oid": oid, "sub": oid, "uti": uti}

    def _lifetime(self, issuer: str) -> dict[str, Any]:
        now = int(time.time())
        return {
            "iss": issuer,
            "iat": now,
            "nbf": now,
            "exp": now + LIFETIME,
            "tid": self.tenant,
        }

    def _identity(self, person: Person) -> dict[str, Any]:
        roles = self.directory.roles_of(person.oid)
        pairwise = hashlib.sha256(f"{self.client}/{person.oid}".encode()).digest()
        return {
            "oid": person.oid,
            "sub": encode(pairwise),
            "sid": str(uuid.uuid4()),
            "uti": encode(uuid.uuid4().bytes),
            **({"roles": roles} if roles else {}),
        }

    def _groups(self, person: Person) -> dict[str, Any]:
        groups = self.directory.groups_of(person.oid)
        if len(groups) <= MOST_GROUPS:
            return {"groups": groups} if groups else {}
        endpoint = f"https://graph.windows.net/{self.tenant}/users/{person.oid}/getMemberObjects"
        return {
            "_claim_names": {"groups": "src1"},
            "_claim_sources": {"src1": {"endpoint": endpoint}},
        }


def _principal(oid: str) -> dict[str, Any]:
    return {"oid": oid, "sub": oid, "uti": encode(uuid.uuid4().bytes)}


def login_hint(person: Person) -> str:
    """Return the opaque hint that names a person to the sign-in and sign-out pages."""
    return f"O.{encode(person.oid.encode())}"
