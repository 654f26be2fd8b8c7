"""Variables of containers: which may be set, and those whose values stand in Secrets of the namespace. Pure."""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

MAX_SECRETS = 20
VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,99}", re.ASCII)
# As Kubernetes names a Secret, and a key of one.
SECRET = re.compile(r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?", re.ASCII)
SECRET_KEY = re.compile(r"(?!\.\.|\.$)[A-Za-z0-9._-]{1,253}", re.ASCII)
# What would change which code runs, or what the cluster itself tells a container.
RESERVED = (
    "LD_",
    "KUBERNETES_",
    "QM_",
    "JOB_COMPLETION_INDEX",
    "PATH",
    "BASH_ENV",
    "ENV",
    "IFS",
    "PYTHONHOME",
)
# As the kubelet says what a variable lacks: of the first a key, of the second all.
NO_KEY = re.compile(r"couldn't find key (\S+) in Secret \S+/(\S+)")
NO_SECRET = re.compile(r'secret "([^"]+)" not found')


@dataclass(frozen=True)
class SecretVariable:
    """A variable that has the value of a key of a Secret in the namespace: the cluster puts it there, at the start."""

    variable: str
    secret: str
    key: str

    @classmethod
    def of(cls, one: Mapping[str, str]) -> "SecretVariable":
        """As a row or a call has it."""
        return cls(one["variable"], one["secret"], one["key"])

    @property
    def as_json(self) -> dict[str, str]:
        """The same for a row."""
        return asdict(self)


def taken_from(secret: str, key: str, *, is_needed: bool = True) -> dict[str, Any]:
    """Where a variable has its value from, without which its container starts only if it is not needed."""
    chosen = {"name": secret, "key": key, **({} if is_needed else {"optional": True})}
    return {"secretKeyRef": chosen}


def refused_variables(names: Iterable[str], *, by: str = "a run") -> str:
    """Why one of these variables is refused to what would set it; empty when all may be set."""
    for name in names:
        if not VARIABLE.fullmatch(name):
            return f"{name[:40]!r} is no name of a variable."
        if is_among(name, RESERVED):
            return f"{name} is set by the cluster or changes which code runs, so {by} cannot set it."
    return ""


def refused_secret(secret: str, key: str = "") -> str:
    """Why a Secret cannot be called so, or a key of it; empty when it can. Whether it is there the cluster knows."""
    if not SECRET.fullmatch(secret):
        return f"{secret[:40]!r} is no name of a Secret: small letters, digits, hyphens and dots."
    if key and not SECRET_KEY.fullmatch(key):
        return f"{key[:40]!r} is no key of a Secret: letters, digits, hyphens, dots and underscores."
    return ""


def refused_secrets(
    secrets: Sequence[SecretVariable],
    *,
    beside: Collection[str] = (),
    by: str = "a run",
) -> str:
    """Why variables from Secrets are refused; empty when all may be set. `beside` are those with plain values."""
    names = [one.variable for one in secrets]
    twice = [name for name in names if name in beside or names.count(name) > 1]
    if twice:
        return f"{twice[0]} is given twice: name it once, with its value or with its Secret."
    refused = (refused_secret(one.secret, one.key) for one in secrets)
    return refused_variables(names, by=by) or next(filter(None, refused), "")


def too_many_secrets(count: int, *, by: str = "A run") -> str:
    """Why so many variables from Secrets are refused; empty when there may be as many."""
    if count <= MAX_SECRETS:
        return ""
    return f"{by} takes at most {MAX_SECRETS} variables from Secrets."


def is_among(name: str, words: Iterable[str]) -> bool:
    """Whether a variable is one of these; a word that ends with an underscore is the beginning of many."""
    return any(
        name == word or (word.endswith("_") and name.startswith(word)) for word in words
    )


def lacking_secret(message: str) -> str:
    """Which Secret or key a container waits for, by what the kubelet says of it; empty for any other message."""
    if (key := NO_KEY.search(message)) is not None:
        return f"The Secret {key[2]}, which it takes a value from, has no key {key[1]}."
    if (name := NO_SECRET.search(message)) is not None:
        return f"The Secret {name[1]}, which it takes a value from, is not in its namespace."
    return ""


def names_in_words(secrets: Iterable[SecretVariable]) -> str:
    """Which variables come from which Secrets, for people."""
    return ", ".join(f"{one.variable} from {one.secret}" for one in secrets)
