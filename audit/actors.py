"""Who did it, as an event remembers it."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Actor:
    """A person, the policy or the portal itself; `id` is the Entra object id of a person, else empty."""

    kind: str
    id: str
    name: str


POLICY = Actor("policy", "", "The policy")
PORTAL = Actor("portal", "", "Quartermaster")
