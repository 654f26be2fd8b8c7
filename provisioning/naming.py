"""Names on clusters: derived, collision-free and never somebody else's. Pure."""

import hashlib
import json
import re
import unicodedata

PREFIX = "qm"
LONGEST = 63
RESERVED = frozenset(
    {
        "default",
        "kube",
        "kueue",
        "openshift",
        "system",
        "admin",
        "root",
        "gatekeeper-system",
        "quartermaster",
        "all",
    }
)
RESERVED_STARTS = ("kube-", "kueue-", "openshift-", "system-", "istio-", "azure-")
SLUG_PATTERN = re.compile(r"[a-z]([a-z0-9-]*[a-z0-9])?")


class NameRefused(ValueError):
    """A name that must not be used; the text says why and what would do."""


def slug_of(name: str, *, longest: int = 30) -> str:
    """The DNS label for a team's or project's name; raises NameRefused with what to change.

    Only Latin letters, digits, spaces, hyphens and dots are taken: a letter of another script that looks like a
    Latin one would make two teams look the same.
    """
    foreign = next((c for c in name if not (c.isascii() and (c.isalnum() or c in " -._&"))), None)
    if foreign is not None:
        shown = unicodedata.name(foreign, "a control character").lower()
        raise NameRefused(f"Use Latin letters, digits, spaces and hyphens; this name has {shown}.")
    slug = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")
    if not slug or not slug[0].isalpha():
        raise NameRefused("Start with a letter.")
    if len(slug) > longest:
        raise NameRefused(f"Use at most {longest} letters and digits; this has {len(slug)}.")
    check_not_reserved(slug)
    return slug


def check_not_reserved(slug: str) -> None:
    """Raise NameRefused when the name belongs to Kubernetes or the platform."""
    if slug in RESERVED or slug.startswith(RESERVED_STARTS) or slug.endswith("-system"):
        raise NameRefused(f"“{slug}” is reserved for the platform. Choose the name people call the team by.")


def namespace_of(*, team: str, project: str, environment: str = "") -> str:
    """The namespace of a team's project: readable, at most 63 characters, different for every (team, project).

    With an environment it is the name of a further environment of the same project on the same cluster. The hash
    covers the parts as JSON, so `a-b` + `c` and `a` + `b-c` never meet.
    """
    parts = [team, project, environment] if environment else [team, project]
    mark = hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:6]
    readable = "-".join([PREFIX, *parts])[: LONGEST - len(mark) - 1].rstrip("-")
    return f"{readable}-{mark}"


def namespaces_of(*, team: str, project: str, environment: str) -> tuple[str, str]:
    """The names that a project's environment may have on a cluster: the short one, and the one beside others."""
    short = namespace_of(team=team, project=project)
    return short, namespace_of(team=team, project=project, environment=environment)
