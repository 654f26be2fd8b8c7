"""A profile as platform leads write it: what a server gets, who may choose it, and what they choose in it. Pure."""

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import yaml
from pydantic import ConfigDict, TypeAdapter, ValidationError

from fleet.images import IMAGE
from notebooks.profiles.patterns import refused_pattern
from provisioning.desired.mounts import CLAIM, is_path
from provisioning.desired.spec import ENVIRONMENTS, GPU
from provisioning.desired.variables import VARIABLE
from web.documents import UNSTORABLE, DocumentRefused, parse, problems_of, unfit

CLOSED = ConfigDict(extra="forbid")
# Addresses beside those of the profiles.
RESERVED = frozenset({"new", "import", "export", "yaml"})
SLUG = re.compile(r"[a-z0-9](?:[a-z0-9_-]{0,38}[a-z0-9])?", re.ASCII)
KEY = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9_.-]{0,58}[A-Za-z0-9])?", re.ASCII)
NAME = re.compile(r"[a-z]([a-z0-9-]{0,38}[a-z0-9])?", re.ASCII)
RESOURCE = re.compile(
    r"nvidia\.com/(?:gpu|mig-[0-9]{1,2}g\.[0-9]{1,4}gb(?:\.me)?)(?:\.shared)?", re.ASCII
)
FEATURE = re.compile(r"[a-z0-9][a-z0-9./_-]{0,199}(?::[\w.-]{1,60})?", re.ASCII)
EXTENSION = re.compile(r"[A-Za-z0-9-]{1,60}\.[A-Za-z0-9-]{1,100}", re.ASCII)
MAX_FEATURES = 20
# What names the value of a free choice in what it sets.
VALUE = "{value}"
MAX_TITLE, MAX_MESSAGE, MAX_HELP, MAX_CPUS, MAX_MEMORY, MAX_GPUS = (
    60,
    300,
    1_000,
    256,
    4096,
    16,
)
MAX_VOLUMES, MAX_VARIABLES, MAX_VALUE, MAX_OPTIONS, MAX_CHOICES, MAX_NAMES = (
    8,
    50,
    1_000,
    8,
    40,
    200,
)
FIRST_ORDER, LAST_ORDER = 0, 9_999
LEAST_IDLE, MOST_IDLE, MOST_HOURS = 10, 7 * 24 * 60, 30 * 24
# libyaml's, where PyYAML came with it: no less safe, and some ten times as fast.
WRITTEN = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
FLAGS = frozenset({"read_only", "default"})


@dataclass(frozen=True, kw_only=True)
class Volume:
    """A claim of the team's namespace, mounted at a path."""

    __pydantic_config__ = CLOSED

    name: str
    path: str
    read_only: bool = False


@dataclass(frozen=True, kw_only=True)
class Settings:
    """What a server gets; what is left out stays as it was. Memory is in GiB.

    A server's requests are its limits. `overrides` are further settings of KubeSpawner, passed on as they are.
    """

    __pydantic_config__ = CLOSED

    image: str = ""
    cpus: float | None = None
    memory: int | None = None
    gpus: int | None = None
    variables: Mapping[str, str] = field(default_factory=dict)
    volumes: tuple[Volume, ...] = ()
    overrides: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Choice(Settings):
    """One of the choices of an option."""

    title: str
    default: bool = False


@dataclass(frozen=True, kw_only=True)
class FreeChoice(Settings):
    """A choice that people type: `{value}` in what it sets stands for it, once it fits the pattern."""

    title: str
    title_in_choices: str = ""
    pattern: str = ""
    message: str = ""


@dataclass(frozen=True, kw_only=True)
class Option:
    """Something that people choose in a profile: an image, a size, a volume."""

    __pydantic_config__ = CLOSED

    title: str
    choices: Mapping[str, Choice] = field(default_factory=dict)
    free: FreeChoice | None = None


@dataclass(frozen=True, kw_only=True)
class DevContainer:
    """What a development container of the same image has beside it: features, a first command, editor extensions."""

    __pydantic_config__ = CLOSED

    features: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    post_create: str = ""
    extensions: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Document(Settings):
    """A profile. `resource` is what its GPUs are counted as; no teams, environments or clusters are all of them.

    A lower `order` comes first, and the first `default` is chosen beforehand. A server is idle after `idle_minutes`
    without use, and ends `hours` after its start; None is never.
    """

    slug: str
    title: str
    help: str = ""
    flavor: str = ""
    resource: str = GPU
    teams: tuple[str, ...] = ()
    environments: tuple[str, ...] = ()
    clusters: tuple[str, ...] = ()
    idle_minutes: int | None = None
    hours: int | None = None
    order: int = 100
    default: bool = False
    options: Mapping[str, Option] = field(default_factory=dict)
    devcontainer: DevContainer = field(default_factory=DevContainer)


_DOCUMENT = TypeAdapter(Document)
_HEAD = ("slug", "title", "help", "order", "default")
_ORDER = (
    *_HEAD,
    *(name for name in Document.__dataclass_fields__ if name not in _HEAD),
)


def read(text: str) -> Document:
    """The document of a YAML text; raises DocumentRefused naming every place that is wrong."""
    found = parse(text)
    if not isinstance(found, dict):
        raise DocumentRefused(
            ("", "A profile is a mapping with slug, title and what a server gets.")
        )
    return document_from({str(key): value for key, value in found.items()})


def document_from(stored: Mapping[str, Any]) -> Document:
    """The document of a JSON value; raises DocumentRefused naming every place that is wrong."""
    if harmful := (
        *unfit("", _without_overrides(stored), flags=FLAGS),
        *_unfit_overrides("", stored),
    ):
        raise DocumentRefused(*harmful)
    try:
        document = _DOCUMENT.validate_python(dict(stored), strict=False)
    except ValidationError as error:
        raise DocumentRefused(*problems_of(error, also={})) from error
    if wrong := tuple(_wrong(document)):
        raise DocumentRefused(*wrong)
    return document


def to_json(document: Document) -> dict[str, Any]:
    """The document without what says nothing, its keys in the order in which people read them."""
    plain: dict[str, Any] = _DOCUMENT.dump_python(
        document, mode="json", exclude_defaults=True
    )
    found: dict[str, Any] = _readable(
        {name: plain[name] for name in _ORDER if name in plain}
    )
    return found


def write(document: Document) -> str:
    """The document as YAML; the same document gives the same text."""
    return yaml.safe_dump(
        to_json(document), sort_keys=False, allow_unicode=True, width=100
    )


def read_again(text: str) -> Document:
    """The document of a text that `write` made, in a fraction of the time; raises DocumentRefused as `read`."""
    try:
        found = yaml.load(text, WRITTEN)  # noqa: S506  # nosec B506
    except yaml.YAMLError:
        found = None
    return document_from(found) if isinstance(found, dict) else read(text)


def chosen_beforehand(option: Option) -> Choice | None:
    """The choice of an option that counts where nobody chose: the first default, else the first; None without any."""
    return next(
        (one for one in option.choices.values() if one.default),
        next(iter(option.choices.values()), None),
    )


def usual(document: Document, name: str) -> Any:
    """A setting of a server where nobody chose anything: the last option that has it counts."""
    found = getattr(document, name)
    for option in document.options.values():
        choice = chosen_beforehand(option)
        value = getattr(choice, name) if choice else None
        found = found if value in (None, "") else value
    return found


def settings_of(document: Document) -> Iterator[tuple[str, Settings]]:
    """Everything that sets something of a server, with its place in the document."""
    yield "", document
    for name, option in document.options.items():
        for key, choice in option.choices.items():
            yield f"options.{name}.choices.{key}", choice
        if option.free is not None:
            yield f"options.{name}.free", option.free


def wrong_settings(place: str, settings: Settings) -> Iterator[tuple[str, str]]:
    """What a server cannot get, with its places."""
    if settings.image and not _is_image(settings):
        yield (
            at(place, "image"),
            "Write an image, as in registry.example.com/team/notebook:1.",
        )
    for name, most in (("cpus", MAX_CPUS), ("memory", MAX_MEMORY)):
        value = getattr(settings, name)
        if value is not None and not 0 < value <= most:
            yield at(place, name), f"Write a number above 0, at most {most:,}."
    if settings.cpus is not None and round(settings.cpus, 3) != settings.cpus:
        yield at(place, "cpus"), "Kubernetes counts CPUs in thousandths."
    if settings.gpus is not None and not 0 <= settings.gpus <= MAX_GPUS:
        yield at(place, "gpus"), f"Write a number from 0 to {MAX_GPUS}."
    yield from _wrong_variables(place, settings)
    yield from _wrong_volumes(place, settings)


def at(place: str, name: str) -> str:
    """A place within another one."""
    return f"{place}.{name}" if place else name


def _without_overrides(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {
            key: {} if key == "overrides" else _without_overrides(one)
            for key, one in value.items()
        }
    return (
        [_without_overrides(one) for one in value] if isinstance(value, list) else value
    )


def _unfit_overrides(place: str, value: Any) -> Iterator[tuple[str, str]]:
    """Whatever in overrides is no JSON: KubeSpawner gets it as JSON, and nobody else knows what is in it."""
    if isinstance(value, Mapping):
        for key, one in value.items():
            yield from (_unfit_json if key == "overrides" else _unfit_overrides)(
                at(place, str(key)), one
            )


def _unfit_json(place: str, value: Any) -> Iterator[tuple[str, str]]:
    if isinstance(value, Mapping):
        for key, one in value.items():
            if not isinstance(key, str) or UNSTORABLE.search(key):
                yield place, "Write keys in quotes."
            yield from _unfit_json(at(place, str(key)), one)
    elif isinstance(value, list):
        for number, one in enumerate(value):
            yield from _unfit_json(at(place, str(number)), one)
    elif isinstance(value, str):
        if UNSTORABLE.search(value):
            yield place, "The text has a character that cannot be kept."
    elif isinstance(value, float) and not math.isfinite(value):
        yield place, "Write a number."
    elif not isinstance(value, int | float | None):
        yield place, "Write a text in quotes."


def _readable(value: Any) -> Any:
    """With titles first, and CPUs as people write them: 8, not 8.0; what KubeSpawner gets as it is stays so."""
    if not isinstance(value, dict):
        return value
    named = (
        {"title": value["title"], **value}
        if "slug" not in value and "title" in value
        else value
    )
    return {
        name: one if name == "overrides" else _number(name, _readable(one))
        for name, one in named.items()
    }


def _number(name: str, value: Any) -> Any:
    return int(value) if name == "cpus" and value == int(value) else value


def _wrong(document: Document) -> Iterator[tuple[str, str]]:
    """Every place that cannot be meant."""
    if document.slug in RESERVED:
        yield "slug", "Choose another one: this is a page's address."
    if not SLUG.fullmatch(document.slug):
        yield (
            "slug",
            "Write small letters, digits, and hyphens or underscores between them, at most 40.",
        )
    yield from _wrong_words(document)
    yield from _wrong_audience(document)
    yield from _wrong_times(document)
    yield from _wrong_devcontainer(document.devcontainer)
    if len(document.options) > MAX_OPTIONS:
        yield "options", f"At most {MAX_OPTIONS}."
    for name, option in document.options.items():
        yield from _wrong_option(f"options.{name}", name, option)
    for place, settings in settings_of(document):
        yield from wrong_settings(place, settings)


def _wrong_words(document: Document) -> Iterator[tuple[str, str]]:
    if not _is_line(document.title, MAX_TITLE):
        yield "title", f"Write one line of at most {MAX_TITLE} characters."
    if (
        len(document.help) > MAX_HELP
        or not document.help.replace("\n", "").isprintable()
    ):
        yield "help", f"Write a text of at most {MAX_HELP:,} characters."


def _wrong_times(document: Document) -> Iterator[tuple[str, str]]:
    if (
        document.idle_minutes is not None
        and not LEAST_IDLE <= document.idle_minutes <= MOST_IDLE
    ):
        yield (
            "idle_minutes",
            f"Write a number of minutes from {LEAST_IDLE} to {MOST_IDLE:,}.",
        )
    if document.hours is not None and not 1 <= document.hours <= MOST_HOURS:
        yield "hours", f"Write a number of hours from 1 to {MOST_HOURS}."


def _wrong_devcontainer(one: DevContainer) -> Iterator[tuple[str, str]]:
    if max(len(one.features), len(one.extensions)) > MAX_FEATURES:
        yield (
            "devcontainer",
            f"At most {MAX_FEATURES} features, and as many extensions.",
        )
    for name in one.features:
        if not FEATURE.fullmatch(name):
            yield (
                "devcontainer.features",
                "Write features as in ghcr.io/devcontainers/features/git:1.",
            )
    for number, name in enumerate(one.extensions):
        if not EXTENSION.fullmatch(name):
            yield (
                f"devcontainer.extensions.{number}",
                "Write an extension as in ms-toolsai.jupyter.",
            )
    if one.post_create and not _is_line(one.post_create, MAX_VALUE):
        yield (
            "devcontainer.post_create",
            f"Write one line of at most {MAX_VALUE:,} characters.",
        )


def _wrong_audience(document: Document) -> Iterator[tuple[str, str]]:
    """Who may choose it, where, and on which GPUs."""
    for name in ("teams", "environments", "clusters"):
        values: tuple[str, ...] = getattr(document, name)
        if len(values) > MAX_NAMES or len(set(values)) < len(values):
            yield name, f"Name at most {MAX_NAMES}, each once."
        for number, value in enumerate(values):
            if not NAME.fullmatch(value):
                yield (
                    f"{name}.{number}",
                    "Write its name as addresses have it: small letters, digits and hyphens.",
                )
    if strange := [one for one in document.environments if one not in ENVIRONMENTS]:
        yield (
            "environments",
            f"There is no “{strange[0][:40]}”; known are: {', '.join(ENVIRONMENTS)}.",
        )
    if document.flavor and not NAME.fullmatch(document.flavor):
        yield "flavor", "Write the flavor's name, as in a100."
    if not RESOURCE.fullmatch(document.resource):
        yield (
            "resource",
            "Write what nodes count the GPUs as: nvidia.com/gpu, or a slice as in nvidia.com/mig-1g.10gb.",
        )
    if not FIRST_ORDER <= document.order <= LAST_ORDER:
        yield "order", f"Write a number from {FIRST_ORDER} to {LAST_ORDER}."


def _wrong_option(place: str, name: str, option: Option) -> Iterator[tuple[str, str]]:
    if not KEY.fullmatch(name) or name == "profile" or "--" in name:
        yield (
            place,
            "Choose another name: letters, digits, and single hyphens, dots and underscores between them.",
        )
    if not _is_line(option.title, MAX_TITLE):
        yield f"{place}.title", f"Write one line of at most {MAX_TITLE} characters."
    if len(option.choices) > MAX_CHOICES or not (option.choices or option.free):
        yield (
            f"{place}.choices",
            f"An option has choices, at most {MAX_CHOICES}, or a free one.",
        )
    for key, choice in option.choices.items():
        if not KEY.fullmatch(key):
            yield (
                f"{place}.choices.{key}",
                "Choose another name: letters, digits, hyphens, dots and underscores.",
            )
        if not _is_line(choice.title, MAX_TITLE):
            yield (
                f"{place}.choices.{key}.title",
                f"Write one line of at most {MAX_TITLE} characters.",
            )
    if option.free is not None:
        yield from _wrong_free(f"{place}.free", option.free)


def _wrong_free(place: str, free: FreeChoice) -> Iterator[tuple[str, str]]:
    for name in ("title", "title_in_choices", "message"):
        text = getattr(free, name)
        if (text or name == "title") and not _is_line(text, MAX_MESSAGE):
            yield (
                f"{place}.{name}",
                f"Write one line of at most {MAX_MESSAGE} characters.",
            )
    if free.pattern and (refused := refused_pattern(free.pattern)):
        yield f"{place}.pattern", refused


def _wrong_variables(place: str, settings: Settings) -> Iterator[tuple[str, str]]:
    if len(settings.variables) > MAX_VARIABLES:
        yield at(place, "variables"), f"At most {MAX_VARIABLES}."
    for name, value in settings.variables.items():
        if not VARIABLE.fullmatch(name) or len(value) > MAX_VALUE:
            yield (
                at(place, f"variables.{name}"),
                f"Write a name as in HF_HOME, and at most {MAX_VALUE:,} characters.",
            )


def _wrong_volumes(place: str, settings: Settings) -> Iterator[tuple[str, str]]:
    if len(settings.volumes) > MAX_VOLUMES:
        yield at(place, "volumes"), f"At most {MAX_VOLUMES}."
    paths = [one.path.rstrip("/") for one in settings.volumes]
    if len(set(paths)) < len(paths):
        yield at(place, "volumes"), "Two volumes cannot be mounted at the same path."
    for number, one in enumerate(settings.volumes):
        if not CLAIM.fullmatch(one.name):
            yield (
                at(place, f"volumes.{number}.name"),
                "A volume is called as its claim in a team's namespace.",
            )
        if not is_path(one.path):
            yield at(place, f"volumes.{number}.path"), "Write an absolute path."


def _is_image(settings: Settings) -> bool:
    if isinstance(settings, FreeChoice):
        return IMAGE.fullmatch(settings.image.replace(VALUE, "value")) is not None
    return IMAGE.fullmatch(settings.image) is not None


def _is_line(text: str, most: int) -> bool:
    return bool(text.strip()) and len(text) <= most and text.isprintable()
