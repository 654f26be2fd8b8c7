"""Parameters of a template: types, limits, help, and what is refused with a sentence. Pure."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from ipaddress import ip_address
from urllib.parse import urlsplit

from fleet.images import IMAGE
from provisioning.desired.mounts import CLAIM, is_path

Value = str | int | bool | tuple[str, ...]
MAX_TEXT, MAX_WORDS, MAX_SCRIPT_BYTES = 400, 200, 256 * 1024
REVISION = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/-]{0,199}", re.ASCII)


class Type(StrEnum):
    """What a parameter takes."""

    TEXT = "text"
    WORDS = "words"
    COUNT = "count"
    CHOICE = "choice"
    FLAG = "flag"
    IMAGE = "image"
    PATH = "path"
    CLAIM = "claim"


@dataclass(frozen=True, kw_only=True)
class Parameter:
    """One parameter; `minimum` and `maximum` bound a count. Without `default` it must be given, if it is needed.

    A fixed one is always its default. The program finds the value in `variable`, where that is said.
    """

    name: str
    type: Type
    title: str
    help: str
    default: Value | None = None
    minimum: int = 0
    maximum: int = 1_000_000
    choices: tuple[str, ...] = ()
    is_needed: bool = True
    is_fixed: bool = False
    variable: str = ""


@dataclass(frozen=True)
class Checked:
    """What was given, with defaults filled in, and a sentence for each parameter that is refused."""

    values: Mapping[str, Value]
    problems: Mapping[str, str]


def check(parameters: Sequence[Parameter], given: Mapping[str, object]) -> Checked:
    """Take what was given by its types; whatever no parameter is named for is refused, too."""
    values: dict[str, Value] = {}
    problems = dict.fromkeys(
        given.keys() - {one.name for one in parameters}, "There is no such parameter."
    )
    for one in parameters:
        value = given.get(one.name, one.default)
        if value is None or value == "":
            if one.is_needed:
                problems[one.name] = f"{one.title} is needed."
            continue
        problem = TESTS[one.type](one, value)
        if one.is_fixed and normalised(value) != one.default:
            problem = f"{one.title} is set by the template: {_in_words(one.default)}."
        if problem:
            problems[one.name] = problem
        else:
            values[one.name] = normalised(value)
    return Checked(values, problems)


def refused_source(url: str, revision: str) -> str:
    """Why a Git address or revision is refused; empty when it may be used. Whether it exists is found out later."""
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
    except ValueError:
        return "This is no address."
    if parts.scheme != "https" or "@" in parts.netloc:
        return "The address begins with https:// and holds no password."
    if (
        "." not in host
        or host.endswith((".local", ".internal", ".svc"))
        or _is_address(host)
    ):
        return "The address names a public Git host, not a machine of this network."
    if not REVISION.fullmatch(revision) or ".." in revision:
        return "The revision is a branch, a tag or a commit."
    return ""


def refused_script(text: str) -> str:
    """Why a pasted script is refused; empty when it may be used."""
    size = len(text.encode())
    if size > MAX_SCRIPT_BYTES:
        return f"The script has {size // 1024} KiB; at most {MAX_SCRIPT_BYTES // 1024} KiB can be pasted. Use Git."
    return (
        "" if text.strip() and "\0" not in text else "The script is empty or no text."
    )


def _is_address(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True


def normalised(value: object) -> Value:
    """A value as it is kept: a list of words is a tuple."""
    return tuple(value) if isinstance(value, list | tuple) else value  # type: ignore[return-value]


def _in_words(value: Value | None) -> str:
    return " ".join(value) if isinstance(value, tuple) else str(value)


def _text(one: Parameter, value: object) -> str:
    fine = isinstance(value, str) and len(value) <= MAX_TEXT and value.isprintable()
    return "" if fine else f"{one.title} is one line of at most {MAX_TEXT} characters."


def _words(one: Parameter, value: object) -> str:
    if not isinstance(value, list | tuple):
        return f'{one.title} is a list of words, such as ["train.py", "--epochs", "3"].'
    if len(value) > MAX_WORDS:
        return f"{one.title} is a list of at most {MAX_WORDS} words."
    is_text = all(map(_is_word, value))
    return "" if is_text else f"{one.title} is a list of words: texts without NUL."


def _is_word(value: object) -> bool:
    return isinstance(value, str) and "\0" not in value


def _count(one: Parameter, value: object) -> str:
    if not isinstance(value, int) or isinstance(value, bool):
        return f"{one.title} is a whole number."
    return (
        ""
        if one.minimum <= value <= one.maximum
        else f"{one.title} is from {one.minimum} to {one.maximum}."
    )


def _choice(one: Parameter, value: object) -> str:
    return (
        ""
        if value in one.choices
        else f"{one.title} is one of: {', '.join(one.choices)}."
    )


def _flag(one: Parameter, value: object) -> str:
    return "" if isinstance(value, bool) else f"{one.title} is yes or no."


def _image(one: Parameter, value: object) -> str:
    fine = isinstance(value, str) and len(value) <= MAX_TEXT and IMAGE.fullmatch(value)
    return (
        ""
        if fine
        else f"{one.title} is no address of a container image: write it like registry.example.com/team/train:1, "
        "without https:// and spaces, and its name in small letters."
    )


def _path(one: Parameter, value: object) -> str:
    return "" if is_path(value) else f"{one.title} is an absolute path."


def _claim(one: Parameter, value: object) -> str:
    return (
        ""
        if isinstance(value, str) and CLAIM.fullmatch(value)
        else f"{one.title} is the name of a volume."
    )


TESTS = {
    Type.TEXT: _text,
    Type.WORDS: _words,
    Type.COUNT: _count,
    Type.CHOICE: _choice,
    Type.FLAG: _flag,
    Type.IMAGE: _image,
    Type.PATH: _path,
    Type.CLAIM: _claim,
}
