"""Which choice of a profile may start, and what is left of a list when the portal is away. Pure."""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Json = dict[str, Any]
FREE = "--unlisted-choice"
# What KubeSpawner's own form sends beside a free value.
FREE_CHOSEN = "unlisted-choice"
MAX_VALUE = 1_000
# Resources of nodes that are no devices; a device of whichever vendor is one of what is left.
PLAIN = re.compile(r"cpu|memory|ephemeral-storage|pods|hugepages-.*")
RESOURCES = frozenset(
    {"extra_resource_limits", "extra_resource_guarantees", "limits", "requests"}
)
GONE = "It may have been withdrawn meanwhile: open the form again."
AWAY = "Quartermaster does not answer, so that only profiles without GPUs can be started. Try again in some minutes."


class Refused(Exception):
    """A choice that starts nothing: `status` is an HTTP status below 500, `why` a sentence for the person."""

    def __init__(self, status: int, why: str) -> None:
        super().__init__(why)
        self.status, self.why = status, why


@dataclass(frozen=True)
class FreeValue:
    """A value that somebody typed, which has to match a pattern as a whole."""

    value: str
    pattern: str
    message: str


def without_gpus(profiles: Sequence[Json]) -> list[Json]:
    """The profiles that can give no GPU or other device, whichever of their choices is taken."""
    return [one for one in profiles if not _has_devices(one)]


def without_variables(profiles: Sequence[Json], names: Collection[str]) -> list[Json]:
    """The profiles as they are for any other server: `names` are variables of a single one."""
    return [_without_variables(one, names) for one in profiles]


def check(
    options: Any, profiles: Sequence[Json], *, is_away: bool = False, reason: str = ""
) -> list[FreeValue]:
    """Raise Refused for what may not start with these profiles; gives the typed values that remain to be matched.

    `reason` is why there are none, as the portal puts it; `is_away` says that it did not answer.
    """
    if not isinstance(options, Mapping):
        raise Refused(400, "The choice of a profile is a mapping of names to words.")
    if any(not isinstance(value, str) for value in options.values()):
        raise Refused(400, "Each part of the choice of a profile is a word.")
    profile = _chosen(options, profiles, AWAY if is_away else reason)
    known: Mapping[str, Json] = profile.get("profile_options") or {}
    names = {"profile", *known, *(f"{name}{FREE}" for name in known)}
    if strange := sorted(
        name for name, value in options.items() if value and name not in names
    ):
        raise Refused(
            400, f"The profile {profile['slug']} has no option {shortened(strange[0])}."
        )
    return [
        found
        for name, option in known.items()
        for found in _of_option(name, option, options)
    ]


def shortened(text: str) -> str:
    """A word of somebody's as a sentence quotes it."""
    return f"“{text if len(text) <= 60 else text[:60] + '…'}”"


def _chosen(options: Mapping[str, str], profiles: Sequence[Json], reason: str) -> Json:
    """The profile that KubeSpawner would take."""
    slug = options.get("profile", "")
    found = next((one for one in profiles if one["slug"] == slug), None)
    if found is not None:
        return found
    if slug:
        raise Refused(
            403,
            f"The profile {shortened(slug)} is not offered to you. {reason or GONE}",
        )
    if not profiles:
        raise Refused(403, f"No profile is offered to you. {reason}".strip())
    return next((one for one in profiles if one.get("default")), profiles[0])


def _of_option(
    name: str, option: Json, options: Mapping[str, str]
) -> Iterator[FreeValue]:
    choice, typed = options.get(name, ""), options.get(f"{name}{FREE}", "")
    title = shortened(str(option.get("display_name") or name))
    choices: Mapping[str, Json] = option.get("choices") or {}
    free: Json = option.get("unlisted_choice") or {}
    if typed:
        if not free.get("enabled"):
            raise Refused(400, f"{title} takes one of its choices only.")
        if len(typed) > MAX_VALUE:
            raise Refused(400, f"{title} takes at most {MAX_VALUE} characters.")
        message = str(
            free.get("validation_message")
            or f"{title} does not take {shortened(typed)}."
        )
        yield FreeValue(typed, str(free.get("validation_regex") or ""), message)
    elif choice == FREE_CHOSEN and choice not in choices:
        raise Refused(400, f"Write what you want for {title}.")
    elif choice and choice not in choices:
        raise Refused(400, f"{title} has no choice {shortened(choice)}. {GONE}")
    elif not choice and not choices:
        raise Refused(400, f"Write what you want for {title}.")


def _without_variables(profile: Json, names: Collection[str]) -> Json:
    override: Json = profile.get("kubespawner_override") or {}
    environment: Json = override.get("environment") or {}
    if not names or not environment:
        return profile
    kept = {name: one for name, one in environment.items() if name not in names}
    return {**profile, "kubespawner_override": {**override, "environment": kept}}


def _has_devices(value: Any, *, inside: bool = False) -> bool:
    """Whether anything in it names a device as a resource of a container or pod."""
    if isinstance(value, Mapping):
        return any(
            (inside and not PLAIN.fullmatch(str(name)))
            or _has_devices(one, inside=name in RESOURCES)
            for name, one in value.items()
        )
    return isinstance(value, list) and any(_has_devices(one) for one in value)
