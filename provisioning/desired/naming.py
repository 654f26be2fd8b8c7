"""Names on clusters: derived, collision-free and never somebody else's. Pure."""

import hashlib
import json
import re
import unicodedata

from anyascii import anyascii
from confusable_homoglyphs import categories, confusables

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
# What may stand between the letters of a name.
JOINERS = frozenset(" -._&'’")
# Scripts that one word of Japanese, Chinese or Korean is written in.
WRITTEN_TOGETHER = frozenset({"HAN", "HIRAGANA", "KATAKANA", "HANGUL", "BOPOMOFO"})
SLUG_PATTERN = re.compile(r"[a-z]([a-z0-9-]*[a-z0-9])?")


class NameRefused(ValueError):
    """A name that must not be used; the text says why and what would do."""


def display_name(name: str) -> str:
    """A team's or project's name as people read it, in any script; raises NameRefused with what to change.

    Composed and with single spaces. What could be taken for another name is refused: invisible and
    compatibility characters, scripts mixed within a word, words of another script that look Latin (UTS #39).
    """
    text = re.sub(" {2,}", " ", unicodedata.normalize("NFC", name).strip(" "))
    for character in text:
        if not (
            character in JOINERS
            or unicodedata.category(character)[0] in "LM"
            or character.isdecimal()
        ):
            shown = unicodedata.name(character, "a control character").lower()
            raise NameRefused(
                f"Use letters, digits, spaces and hyphens; this name has {shown}."
            )
    if unicodedata.normalize("NFKC", text) != text:
        raise NameRefused(
            "Write the name with ordinary letters and digits, without wide or joined forms."
        )
    for word in text.split():
        _check_script(word)
    return text


def slug_of(name: str, *, longest: int = 30) -> str:
    """The DNS label for a team's or project's name, transliterated; raises NameRefused with what to change."""
    slug = re.sub(r"[^a-z0-9]+", "-", anyascii(display_name(name)).lower()).strip("-")
    if not slug or not slug[0].isalpha():
        raise NameRefused("Start with a letter.")
    slug = slug[:longest].rstrip("-")
    check_not_reserved(slug)
    return slug


def _check_script(word: str) -> None:
    """Refuse a word of several scripts, and one of another script whose every letter looks like a Latin one."""
    scripts = categories.unique_aliases(word) - {"COMMON", "INHERITED"}
    if len(scripts - WRITTEN_TOGETHER) + bool(scripts & WRITTEN_TOGETHER) > 1:
        names = " and ".join(sorted(script.lower() for script in scripts))
        raise NameRefused(f"Write each word in one script; “{word}” mixes {names}.")
    if "LATIN" in scripts:
        return
    found = (
        confusables.is_confusable(word, greedy=True, preferred_aliases=["latin"]) or []
    )
    lookalikes = {
        each["character"]
        for each in found
        if any(h["c"].isascii() for h in each["homoglyphs"])
    }
    letters = {
        character
        for character in word
        if character.isalpha() and not character.isascii()
    }
    if letters and letters <= lookalikes:
        raise NameRefused(
            f"Every letter of “{word}” looks like a Latin one: write it in Latin letters."
        )


def check_not_reserved(slug: str) -> None:
    """Raise NameRefused when the name belongs to Kubernetes or the platform."""
    if slug in RESERVED or slug.startswith(RESERVED_STARTS) or slug.endswith("-system"):
        raise NameRefused(
            f"“{slug}” is reserved for the platform. Choose the name people call the team by."
        )


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
