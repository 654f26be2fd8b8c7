"""Who did it, as an event remembers it."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Actor:
    """A person, a team's pipelines, the policy or the portal itself; `id` is a person's Entra object id.

    That of pipelines is made up by the portal; policy and portal have none.
    """

    kind: str
    id: str
    name: str


POLICY = Actor("policy", "", "The policy")
PORTAL = Actor("portal", "", "Quartermaster")
