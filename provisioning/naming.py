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


def namespace_of(*, team: str, project: str) -> str:
    """The namespace of a team's project: readable, at most 63 characters, different for every (team, project).

    The hash covers the pair as JSON, so `a-b` + `c` and `a` + `b-c` never meet.
    """
    mark = hashlib.sha256(json.dumps([team, project]).encode()).hexdigest()[:6]
    readable = f"{PREFIX}-{team}-{project}"[: LONGEST - len(mark) - 1].rstrip("-")
    return f"{readable}-{mark}"
