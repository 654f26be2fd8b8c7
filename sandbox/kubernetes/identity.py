"""Who calls: bearer tokens and the identities they stand for."""

from collections.abc import Mapping
from dataclasses import dataclass

from sandbox.kubernetes.status import unauthorized


@dataclass(frozen=True)
class Identity:
    """A user name with groups, as a cluster's authenticator sees it; ``system:authenticated`` is added."""

    user: str
    groups: tuple[str, ...] = ()
    uid: str = ""

    @property
    def all_groups(self) -> tuple[str, ...]:
        """The groups including the one every known user is in."""
        if self.user == ANONYMOUS_USER:
            return self.groups
        return (*self.groups, "system:authenticated")


ANONYMOUS_USER = "system:anonymous"
ANONYMOUS = Identity(ANONYMOUS_USER, ("system:unauthenticated",))


def authenticate(header: str | None, tokens: Mapping[str, Identity]) -> Identity:
    """The caller behind an Authorization header; none at all is anonymous, an unknown token 401."""
    if not header:
        return ANONYMOUS
    scheme, _, token = header.partition(" ")
    if scheme.lower() != "bearer":
        return ANONYMOUS
    identity = tokens.get(token.strip())
    if identity is None:
        raise unauthorized()
    return identity
