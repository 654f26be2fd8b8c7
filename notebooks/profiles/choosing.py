"""What a person chose in a profile, held against it: the same answer as the hub's, before anything is sent. Pure."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fleet.images import refused_image
from notebooks.profiles.document import (
    VALUE,
    Document,
    FreeChoice,
    Option,
    Settings,
    chosen_beforehand,
)
from notebooks.profiles.patterns import MAX_VALUE

# What a free choice is called beside its option, in KubeSpawner's words.
FREE = "--unlisted-choice"


@dataclass(frozen=True, kw_only=True)
class Chosen:
    """A server as it was chosen. `options` are KubeSpawner's, every one of them said; memory is in GiB."""

    image: str
    gpus: int
    cpus: float
    memory: int
    options: Mapping[str, str]
    words: tuple[str, ...] = ()


class NotAChoice(ValueError):
    """Something was chosen that the profile does not have; `option` is its name."""

    def __init__(self, option: str, sentence: str) -> None:
        super().__init__(sentence)
        self.option, self.sentence = option, sentence


def chosen(
    document: Document, options: Mapping[str, str], *, images: Sequence[str] = ()
) -> Chosen:
    """The server that a profile makes of these choices; what nobody chose is as the profile has it beforehand.

    `images` are the beginnings of images that are allowed, none for any. Raises NotAChoice naming the option.
    """
    for name in options:
        if name.removesuffix(FREE) not in document.options:
            raise NotAChoice(name, f"{document.title} has no option “{name}”.")
    settings: list[Settings] = [document]
    taken: dict[str, str] = {}
    words: list[str] = []
    for name, option in document.options.items():
        key, value, part, word = _choice(name, option, options, images)
        settings.append(part)
        taken[key] = value
        words.append(word)
    return Chosen(
        image=_last(settings, "image", ""),
        gpus=_last(settings, "gpus", 0),
        cpus=_last(settings, "cpus", 0.0),
        memory=_last(settings, "memory", 0),
        options=taken,
        words=tuple(filter(None, words)),
    )


def options_within(document: Document, gpus: int) -> dict[str, str]:
    """The choices that decide on GPUs, each with the most that are not more than so many; the others as beforehand."""
    found = {}
    for name, option in document.options.items():
        sizes = {
            key: one.gpus
            for key, one in option.choices.items()
            if one.gpus is not None and one.gpus <= gpus
        }
        usual = chosen_beforehand(option)
        if sizes and (usual is None or usual.gpus is not None):
            found[name] = max(sizes, key=lambda key: sizes[key])
    return found


def _choice(
    name: str, option: Option, options: Mapping[str, str], images: Sequence[str]
) -> tuple[str, str, Settings, str]:
    """What an option was set to: KubeSpawner's key and value, what it sets of the server, and its words."""
    typed = options.get(f"{name}{FREE}", "")
    if typed:
        if option.free is None:
            raise NotAChoice(name, f"{option.title} has no free choice.")
        return f"{name}{FREE}", typed, _free(name, option.free, typed, images), typed
    key = options.get(name, "")
    if key:
        if key not in option.choices:
            raise NotAChoice(
                name,
                f"{option.title} has no “{key}”. Choose one of {', '.join(option.choices)}.",
            )
        return name, key, option.choices[key], option.choices[key].title
    usual = chosen_beforehand(option)
    if usual is None:
        raise NotAChoice(name, f"{option.title}: write what you want.")
    return (
        name,
        next(key for key, one in option.choices.items() if one is usual),
        usual,
        usual.title,
    )


def _free(name: str, free: FreeChoice, typed: str, images: Sequence[str]) -> Settings:
    is_short = len(typed) <= MAX_VALUE and typed.isprintable()
    if not is_short or (free.pattern and re.fullmatch(free.pattern, typed) is None):
        raise NotAChoice(
            name,
            free.message or f"{free.title}: this is not of the form that is allowed.",
        )
    image = free.image.replace(VALUE, typed)
    if refused := refused_image(image or None, images):
        raise NotAChoice(name, refused)
    return Settings(image=image, cpus=free.cpus, memory=free.memory, gpus=free.gpus)


def _last(settings: list[Settings], name: str, nothing: Any) -> Any:
    """What counts of a setting: the last part that says it, as KubeSpawner lays them over each other."""
    found = [getattr(one, name) for one in settings]
    return next((one for one in reversed(found) if one not in (None, "")), nothing)
