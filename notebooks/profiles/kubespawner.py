"""Profiles as KubeSpawner's `profile_list`, out and in again without loss. Pure.

What a document has words for becomes those; everything else in `kubespawner_override` stays in `overrides`. What
KubeSpawner has no word for stands under a key of ours, which it passes over. Its `G` is a GiB.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import yaml
from anyascii import anyascii

from notebooks.profiles.document import (
    RESOURCE,
    Document,
    FreeChoice,
    Option,
    Settings,
    Volume,
    document_from,
    to_json,
    wrong_settings,
)
from web.documents import DocumentRefused, parse

Json = dict[str, Any]
OURS = "x-quartermaster"
LIST = "profile_list"
# What the product's Helm chart calls the list (Zero to JupyterHub).
LIST_OF_HELM = "profileList"
MAX_PROFILES = 100
STEP = 10  # between the orders of neighbours, where the file names none
GIB = re.compile(r"([1-9][0-9]{0,3})G", re.ASCII)
COUNT = re.compile(r"0|[1-9][0-9]?", re.ASCII)
PROFILE = frozenset(
    {
        "slug",
        "display_name",
        "description",
        "default",
        "kubespawner_override",
        "profile_options",
        OURS,
    }
)
OPTION = frozenset({"display_name", "choices", "unlisted_choice"})
CHOICE = frozenset({"display_name", "default", "kubespawner_override"})
FREE = frozenset(
    {
        "enabled",
        "display_name",
        "display_name_in_choices",
        "validation_regex",
        "validation_message",
        "kubespawner_override",
    }
)
ONLY_OURS = (
    "flavor",
    "resource",
    "teams",
    "environments",
    "clusters",
    "idle_minutes",
    "hours",
    "devcontainer",
)
CPU = ("cpu_limit", "cpu_guarantee")
MEMORY = ("mem_limit", "mem_guarantee")
GPUS = ("extra_resource_limits", "extra_resource_guarantees")


def write_list(documents: Sequence[Document]) -> str:
    """The profiles as YAML that KubeSpawner takes as its `profile_list`, in their order."""
    ordered = in_order(documents)
    profiles = [profile_of(one, position=number) for number, one in enumerate(ordered)]
    return yaml.safe_dump(
        {LIST: profiles}, sort_keys=False, allow_unicode=True, width=100
    )


def in_order(documents: Sequence[Document]) -> list[Document]:
    """As people read them: by their order, then by slug."""
    return sorted(documents, key=lambda one: (one.order, one.slug))


def read_list(text: str) -> list[Document]:
    """The profiles of a YAML text: a list, KubeSpawner's mapping by name, either of them under `profile_list`.

    Raises DocumentRefused naming every place that is wrong.
    """
    found = parse(text)
    for name in (LIST, LIST_OF_HELM):
        if isinstance(found, dict) and set(found) == {name}:
            found = found[name]
    if isinstance(found, dict) and all(isinstance(key, str) for key in found):
        found = [found[key] for key in sorted(found)]  # as KubeSpawner sorts them
    if not isinstance(found, list) or not 1 <= len(found) <= MAX_PROFILES:
        raise DocumentRefused((LIST, f"Write a list of 1 to {MAX_PROFILES} profiles."))
    documents, problems = list[Document](), list[tuple[str, str]]()
    for number, one in enumerate(found):
        try:
            documents.append(document_of(one, position=number))
        except DocumentRefused as refused:
            problems += [
                (f"{number}.{place}".rstrip("."), what)
                for place, what in refused.problems
            ]
    slugs = [one.slug for one in documents]
    problems += [
        ("", f"Two profiles of the file are called {slug}.")
        for slug in {*slugs}
        if slugs.count(slug) > 1
    ]
    if problems:
        raise DocumentRefused(*problems)
    return documents


def profile_of(document: Document, *, position: int = 0) -> Json:
    """A profile as KubeSpawner takes it, for any team; what follows from a team's namespace is not in it."""
    ours: Json = {
        name: value for name, value in to_json(document).items() if name in ONLY_OURS
    }
    if document.order != _order_at(position):
        ours["order"] = document.order
    return {**plain_profile_of(document), **({OURS: ours} if ours else {})}


def plain_profile_of(document: Document) -> Json:
    """The same without what KubeSpawner has no word for."""
    options = {
        name: _option(one, document.resource) for name, one in document.options.items()
    }
    return {
        "slug": document.slug,
        "display_name": document.title,
        **({"description": document.help} if document.help else {}),
        **({"default": True} if document.default else {}),
        **_with_override(document, document.resource),
        **({"profile_options": options} if options else {}),
    }


def document_of(profile: object, *, position: int = 0) -> Document:
    """The document of a profile of KubeSpawner's; raises DocumentRefused naming every place that is wrong."""
    if not isinstance(profile, Mapping):
        raise DocumentRefused(("", "A profile is a mapping."))
    if problems := [*_strange("", profile)]:
        raise DocumentRefused(*problems)
    ours: Mapping[str, Any] = profile.get(OURS, {})
    resource = ours.get("resource") or _resource_in(profile)
    plain: Json = {
        "slug": profile["slug"]
        if "slug" in profile
        else _slug_of(str(profile.get("display_name", ""))),
        "title": profile.get("display_name", ""),
        "help": profile.get("description", ""),
        "default": profile.get("default", False),
        "order": _order_at(position),
        **_settings(profile, resource),
        "options": {
            name: _option_of(one, resource)
            for name, one in profile.get("profile_options", {}).items()
        },
        **ours,
        **({"resource": resource} if resource else {}),
    }
    return document_from(plain)


def override_of(settings: Settings, resource: str) -> Json:
    """What is set of a server in KubeSpawner's words; requests are limits."""
    found: Json = {}
    if settings.image:
        found["image"] = settings.image
    if settings.cpus is not None:
        found |= dict.fromkeys(
            CPU,
            int(settings.cpus)
            if settings.cpus == int(settings.cpus)
            else settings.cpus,
        )
    if settings.memory is not None:
        found |= dict.fromkeys(MEMORY, f"{settings.memory}G")
    if settings.gpus is not None:
        found |= {name: {resource: str(settings.gpus)} for name in GPUS}
    if settings.variables:
        found["environment"] = dict(settings.variables)
    if settings.volumes:
        found["volumes"] = {one.name: _volume(one) for one in settings.volumes}
        found["volume_mounts"] = {
            _mounted_as(one): _mount(one) for one in settings.volumes
        }
    return found | dict(settings.overrides)


def _with_override(settings: Settings, resource: str) -> Json:
    override = override_of(settings, resource)
    return {"kubespawner_override": override} if override else {}


def _option(option: Option, resource: str) -> Json:
    choices = {
        key: {
            "display_name": one.title,
            **({"default": True} if one.default else {}),
            **_with_override(one, resource),
        }
        for key, one in option.choices.items()
    }
    found: Json = {
        "display_name": option.title,
        **({"choices": choices} if choices else {}),
    }
    if (free := option.free) is not None:
        found["unlisted_choice"] = {
            "enabled": True,
            "display_name": free.title,
            **(
                {"display_name_in_choices": free.title_in_choices}
                if free.title_in_choices
                else {}
            ),
            **({"validation_regex": free.pattern} if free.pattern else {}),
            **({"validation_message": free.message} if free.message else {}),
            **_with_override(free, resource),
        }
    return found


def _option_of(option: Mapping[str, Any], resource: str) -> Json:
    choices = {
        key: {
            "title": one.get("display_name", key),
            "default": one.get("default", False),
            **_settings(one, resource),
        }
        for key, one in option.get("choices", {}).items()
    }
    found: Json = {"title": option.get("display_name", ""), "choices": choices}
    free = option.get("unlisted_choice") or {}
    if free.get("enabled"):
        found["free"] = {
            "title": free.get("display_name", ""),
            "title_in_choices": free.get("display_name_in_choices", ""),
            "pattern": free.get("validation_regex", ""),
            "message": free.get("validation_message", ""),
            **_settings(free, resource, partial(FreeChoice, title="")),
        }
    return found


def _settings(
    part: Mapping[str, Any], resource: str, make: Callable[..., Settings] = Settings
) -> Json:
    """What an override sets, in the words of a document as far as it has them."""
    override = dict(part.get("kubespawner_override", {}))
    found: Json = {}
    for names, name, read in READ:
        value = read(override, resource)
        # A value that a document cannot have stays KubeSpawner's, as it is.
        if value not in (None, "", (), {}) and not [
            *wrong_settings("", make(**{name: value}))
        ]:
            found[name] = value
            override = {key: one for key, one in override.items() if key not in names}
    return {**found, **({"overrides": override} if override else {})}


def _image_in(override: Mapping[str, Any], resource: str) -> str | None:
    image = override.get("image")
    return image if isinstance(image, str) else None


def _cpus_in(override: Mapping[str, Any], resource: str) -> float | None:
    limit, guarantee = (override.get(name) for name in CPU)
    is_number = isinstance(limit, int | float) and not isinstance(limit, bool)
    return limit if is_number and limit == guarantee else None


def _memory_in(override: Mapping[str, Any], resource: str) -> int | None:
    limit, guarantee = (override.get(name) for name in MEMORY)
    found = (
        GIB.fullmatch(limit) if isinstance(limit, str) and limit == guarantee else None
    )
    return int(found[1]) if found else None


def _gpus_in(override: Mapping[str, Any], resource: str) -> int | None:
    limits, guarantees = (override.get(name) for name in GPUS)
    if (
        not resource
        or not isinstance(limits, Mapping)
        or limits != guarantees
        or {*limits} != {resource}
    ):
        return None
    text = str(limits[resource])
    return int(text) if COUNT.fullmatch(text) else None


def _variables_in(
    override: Mapping[str, Any], resource: str
) -> Mapping[str, str] | None:
    found = override.get("environment")
    is_plain = isinstance(found, Mapping) and all(
        isinstance(one, str) for one in found.values()
    )
    return found if is_plain else None


def _volumes_in(override: Mapping[str, Any], resource: str) -> tuple[Volume, ...]:
    """The claims that an override mounts, where it does nothing else with volumes; none where it does."""
    volumes, mounts = override.get("volumes"), override.get("volume_mounts")
    if not isinstance(volumes, Mapping) or not isinstance(mounts, Mapping):
        return ()
    found = tuple(
        Volume(
            name=one["name"],
            path=one["mountPath"],
            read_only=one.get("readOnly") is True,
        )
        for one in mounts.values()
        if isinstance(one, Mapping)
        and isinstance(one.get("name"), str)
        and isinstance(one.get("mountPath"), str)
    )
    same = {_mounted_as(one): _mount(one) for one in found} == mounts
    return (
        found if same and {one.name: _volume(one) for one in found} == volumes else ()
    )


# What a document has a word for: the settings of KubeSpawner that say it together, the word, and how it is read.
READ: Sequence[tuple[Sequence[str], str, Callable[[Mapping[str, Any], str], Any]]] = (
    (("image",), "image", _image_in),
    (CPU, "cpus", _cpus_in),
    (MEMORY, "memory", _memory_in),
    (GPUS, "gpus", _gpus_in),
    (("environment",), "variables", _variables_in),
    (("volumes", "volume_mounts"), "volumes", _volumes_in),
)
# Each setting of KubeSpawner that a document has a word for, with the word.
HAS_WORDS_FOR: Mapping[str, str] = {
    name: word for names, word, _ in READ for name in names
}


def _resource_in(profile: Mapping[str, Any]) -> str:
    """What its GPUs are counted as; empty for a profile without any."""
    options = profile.get("profile_options", {}).values()
    parts = [profile, *(part for one in options for part in _parts(one))]
    limits = [part.get("kubespawner_override", {}).get(GPUS[0]) for part in parts]
    names = [
        name
        for one in limits
        if isinstance(one, Mapping)
        for name in one
        if isinstance(name, str)
    ]
    return next((name for name in names if RESOURCE.fullmatch(name)), "")


def _parts(option: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [*option.get("choices", {}).values(), option.get("unlisted_choice", {})]


def _volume(one: Volume) -> Json:
    return {"name": one.name, "persistentVolumeClaim": {"claimName": one.name}}


def _mounted_as(one: Volume) -> str:
    return f"{one.name}{one.path}"


def _mount(one: Volume) -> Json:
    return {
        "name": one.name,
        "mountPath": one.path,
        **({"readOnly": True} if one.read_only else {}),
    }


def _order_at(position: int) -> int:
    return STEP * (position + 1)


def _slug_of(name: str) -> str:
    """The slug that KubeSpawner makes of a name."""
    return re.sub("[^a-z0-9]+", "-", anyascii(name).lower()).strip("-")


def _strange(place: str, profile: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Keys and shapes that KubeSpawner does not have."""
    yield from _keys("", profile, PROFILE)
    yield from _mapping("kubespawner_override", profile)
    yield from _mapping(OURS, profile)
    yield from _unknown_ours(profile.get(OURS, {}))
    yield from _mapping("profile_options", profile)
    options = profile.get("profile_options", {})
    for name, option in options.items() if isinstance(options, Mapping) else ():
        yield from _strange_option(f"profile_options.{name}", option)


def _unknown_ours(ours: object) -> Iterator[tuple[str, str]]:
    if isinstance(ours, Mapping):
        yield from _keys(OURS, ours, frozenset({*ONLY_OURS, "order"}))


def _strange_option(place: str, option: object) -> Iterator[tuple[str, str]]:
    if not isinstance(option, Mapping):
        yield place, "Write keys with values."
        return
    yield from _keys(place, option, OPTION)
    yield from _mapping("choices", option, place)
    yield from _mapping("unlisted_choice", option, place)
    choices, free = option.get("choices", {}), option.get("unlisted_choice", {})
    for key, choice in choices.items() if isinstance(choices, Mapping) else ():
        yield from _strange_part(f"{place}.choices.{key}", choice, CHOICE)
    if isinstance(free, Mapping):
        yield from _strange_part(f"{place}.unlisted_choice", free, FREE)


def _strange_part(
    place: str, part: object, known: frozenset[str]
) -> Iterator[tuple[str, str]]:
    if not isinstance(part, Mapping):
        yield place, "Write keys with values."
        return
    yield from _keys(place, part, known)
    yield from _mapping("kubespawner_override", part, place)


def _keys(
    place: str, part: Mapping[str, Any], known: frozenset[str]
) -> Iterator[tuple[str, str]]:
    for key in part:
        if key not in known:
            yield f"{place}.{key}".lstrip("."), "KubeSpawner has no such key here."


def _mapping(
    name: str, part: Mapping[str, Any], place: str = ""
) -> Iterator[tuple[str, str]]:
    if not isinstance(part.get(name, {}), Mapping):
        yield f"{place}.{name}".lstrip("."), "Write keys with values."
