"""Variables of a notebook whose values stand in Secrets: which may be named, and how KubeSpawner takes them. Pure.

The hub is told of them when it asks for profiles at the spawn. It keeps no names: the portal alone has them.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from notebooks.profiles.document import Document, Settings
from provisioning.desired.variables import (
    SecretVariable,
    is_among,
    refused_secrets,
    taken_from,
    too_many_secrets,
)

Json = dict[str, Any]
# What the hub or KubeSpawner gives each server, and what says where Jupyter has its settings and whom it lets in.
OF_THE_HUB = (
    "JUPYTERHUB_",
    "JUPYTER_",
    "JPY_",
    "CPU_LIMIT",
    "CPU_GUARANTEE",
    "MEM_LIMIT",
    "MEM_GUARANTEE",
)


def refused(document: Document, secrets: Sequence[SecretVariable]) -> str:
    """Why a server of a profile cannot have these variables; empty when it can."""
    names = [one.variable for one in secrets]
    of_profile = {*_set_by(document)}
    return (
        too_many_secrets(len(secrets), by="A notebook")
        or refused_secrets(secrets, by="a notebook")
        or _taken(
            [name for name in names if is_among(name, OF_THE_HUB)],
            "is set by JupyterHub",
        )
        or _taken(
            [name for name in names if name in of_profile],
            "is set by the profile",
        )
    )


def with_secrets(profile: Json, secrets: Iterable[SecretVariable]) -> Json:
    """An entry of KubeSpawner's `profile_list` whose servers have these variables, too."""
    variables = {
        one.variable: {"valueFrom": taken_from(one.secret, one.key)} for one in secrets
    }
    if not variables:
        return profile
    override: Json = profile.get("kubespawner_override", {})
    environment = {**override.get("environment", {}), **variables}
    return {
        **profile,
        "kubespawner_override": {**override, "environment": environment},
    }


def _taken(names: Sequence[str], why: str) -> str:
    return f"{names[0]} {why}, so a notebook cannot set it." if names else ""


def _set_by(document: Document) -> Iterator[str]:
    """The variables that a profile or one of its choices sets, which would overrule a person's without a word."""
    parts: list[Settings] = [document]
    for option in document.options.values():
        parts += [*option.choices.values(), *([option.free] if option.free else [])]
    for part in parts:
        yield from part.variables
        own = part.overrides.get("environment", {})
        yield from own if isinstance(own, Mapping) else ()
