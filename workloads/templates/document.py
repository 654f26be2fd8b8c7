"""A template as its keepers write it: a shape that comes with the product, narrowed and filled in. Pure; YAML.

A document can only narrow its shape: a maximum below the shape's, some of its choices, a value that nobody changes.
What it adds are parameters of its own, which the program finds in its environment.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import yaml
from pydantic import ConfigDict, TypeAdapter, ValidationError

from fleet.images import IMAGE
from provisioning.desired.mounts import CLAIM
from provisioning.desired.variables import refused_variables
from web.documents import DocumentRefused, parse, problems_of, unfit
from workloads.templates.library import ANY_CAPACITY, BY_SLUG, Template
from workloads.templates.parameters import (
    TESTS,
    Parameter,
    Type,
    normalised,
    refused_source,
)
from workloads.templates.run import Claim

CLOSED = ConfigDict(extra="forbid")
WORDS = {
    "literal_error": "This is none of the words that can stand here.",
    "string_type": "Write a text in quotes.",
}
# What pydantic calls a key that is not known, which can be left away without changing what the others mean.
UNKNOWN_KEY = frozenset({"unexpected_keyword_argument", "extra_forbidden"})
NEEDED = ("slug", "title", "help", "shape")
# Addresses beside those of the templates.
RESERVED = frozenset({"new", "import", "export", "yaml"})
DEFAULTS = "Write a text in quotes, a whole number, true or false, or a list of words."
SLUG = re.compile(r"[a-z][a-z0-9-]{0,38}[a-z0-9]", re.ASCII)
NAME = re.compile(r"[a-z][a-z0-9_]{0,39}", re.ASCII)
FLAGS = frozenset({"fixed", "needed", "read_only", "default"})
(
    LONGEST_TITLE,
    LONGEST_HELP,
    MOST_PARAMETERS,
    MOST_IMAGES,
    MOST_VARIABLES,
    MOST_CLAIMS,
) = (
    60,
    300,
    30,
    20,
    50,
    8,
)
LARGEST_GPU_MEMORY = 1_000
# A team's own names for these would not be told apart from those of the frame around every template.
OF_THE_FRAME = frozenset(
    {
        "title",
        "flavor",
        "priority",
        "token",
        "claims",
        "variables",
        "script_text",
        "script_file",
        "git_url",
        "git_revision",
        "check",
        "manifest",
        "template",
        "place",
        "again",
    }
)


@dataclass(frozen=True, kw_only=True)
class ParameterSaid:
    """What a document says of a parameter; what is left out stays as the shape has it.

    Only a parameter of the document's own has a type, and a `variable`.
    """

    __pydantic_config__ = CLOSED

    title: str = ""
    help: str = ""
    default: str | int | bool | tuple[str, ...] | None = None
    minimum: int | None = None
    maximum: int | None = None
    choices: tuple[str, ...] = ()
    fixed: bool = False
    needed: bool | None = None
    type: Literal["text", "count", "choice", "flag", "path"] | None = None
    variable: str = ""


@dataclass(frozen=True, kw_only=True)
class ClaimSaid:
    """A volume of the team's namespace that every run mounts."""

    __pydantic_config__ = CLOSED

    name: str
    path: str
    read_only: bool = False


@dataclass(frozen=True, kw_only=True)
class RepositorySaid:
    """Where the program comes from when a run brings none."""

    __pydantic_config__ = CLOSED

    url: str
    revision: str


@dataclass(frozen=True, kw_only=True)
class Document:
    """A template as a document says it; `gpu_memory` is GB that one GPU needs, 0 for any."""

    __pydantic_config__ = CLOSED

    slug: str
    title: str
    help: str
    shape: str
    images: tuple[str, ...] = ()
    parameters: Mapping[str, ParameterSaid] = field(default_factory=dict)
    variables: Mapping[str, str] = field(default_factory=dict)
    claims: tuple[ClaimSaid, ...] = ()
    repository: RepositorySaid | None = None
    priority: str = ""
    capacity: Literal["any", "spot", "on_demand"] = ANY_CAPACITY  # type: ignore[assignment]
    gpu_memory: int = 0


_DOCUMENT = TypeAdapter(Document)


def read(text: str) -> Document:
    """The document of a YAML text; raises DocumentRefused naming every place that is wrong."""
    said = parse(text)
    if not isinstance(said, dict):
        raise DocumentRefused(
            ("", "A template is a mapping with slug, title, help and shape.")
        )
    return document_from({str(key): value for key, value in said.items()})


def document_from(stored: Mapping[str, Any]) -> Document:
    """The document of a JSON value; raises DocumentRefused naming every place that is wrong."""
    if harmful := tuple(unfit("", stored, flags=FLAGS)):
        raise DocumentRefused(*harmful)
    try:
        document = _DOCUMENT.validate_python(dict(stored), strict=False)
    except ValidationError as error:
        problems = _each_once(problems_of(error, also=WORDS))
        raise DocumentRefused(*problems, *_wrong_beside(stored, error)) from error
    if wrong := tuple(_wrong(document)):
        raise DocumentRefused(*wrong)
    return document


def template_of(document: Document, *, version: int) -> Template:
    """The template that a document which was taken describes."""
    shape = BY_SLUG[document.shape]
    own = [
        _own(name, said)
        for name, said in document.parameters.items()
        if name not in _by_name(shape)
    ]
    parameters = [_narrowed(one, document) for one in shape.parameters]
    return replace(
        shape,
        slug=document.slug,
        title=document.title,
        help=document.help,
        shape=shape.slug,
        version=version,
        parameters=(*parameters, *own),
        variables=dict(document.variables),
        claims=tuple(
            Claim(one.name, one.path, one.read_only) for one in document.claims
        ),
        repository=(document.repository.url, document.repository.revision)
        if document.repository
        else None,
        priority=document.priority,
        capacity=document.capacity,
        gpu_memory=document.gpu_memory,
    )


def document_of(template: Template) -> Document:
    """A template that comes with the product as a document to begin from; what it leaves to its shape is left out."""
    said = {
        one.name: ParameterSaid(default=one.default, maximum=one.maximum)
        for one in template.parameters
        if one.type is Type.COUNT
    }
    return Document(
        slug=template.slug,
        title=template.title,
        help=template.help,
        shape=template.slug,
        parameters=said,
    )


def to_json(document: Document) -> dict[str, Any]:
    """The document as a row keeps it, without what says nothing."""
    plain: dict[str, Any] = _DOCUMENT.dump_python(
        document, mode="json", exclude_defaults=True
    )
    return {
        name: plain[name] for name in Document.__dataclass_fields__ if name in plain
    }


def write(document: Document) -> str:
    """The document as YAML, with its keys in the order of this module; the same document gives the same text."""
    return yaml.safe_dump(
        to_json(document), sort_keys=False, allow_unicode=True, width=100
    )


def _each_once(problems: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """What is wrong with a default is told once, and not for each type that it could have had."""
    found: dict[str, str] = {}
    for place, what in problems:
        head, is_default, _ = place.partition(".default.")
        found[f"{head}.default" if is_default else place] = (
            DEFAULTS if is_default else what
        )
    return [*found.items()]


def _wrong_beside(
    stored: Mapping[str, Any], error: ValidationError
) -> Iterator[tuple[str, str]]:
    """What else cannot be meant, beside the values of a wrong kind: their parts are left out of it."""
    found = error.errors(include_url=False, include_context=False, include_input=False)
    said = deepcopy(dict(stored))
    for one in found:
        if one["type"] in UNKNOWN_KEY:
            _without(said, one["loc"])
    wrong = {one["loc"][:2] for one in found if one["type"] not in UNKNOWN_KEY}
    for head, *inner in wrong:
        if head == "parameters" and inner:
            _without(said, (head, inner[0]))
        else:
            _without(said, (head,))
    absent = {name for name in NEEDED if name not in said}
    try:
        document = _DOCUMENT.validate_python(
            said | dict.fromkeys(absent, ""), strict=False
        )
    except ValidationError:
        return
    yield from (
        (place, what) for place, what in _wrong(document) if place not in absent
    )


def _without(said: Any, path: Sequence[int | str]) -> None:
    """Take the key at a place away, where it is there."""
    *way, last = path
    for step in way:
        if isinstance(said, dict):
            said = said.get(step)
        elif isinstance(said, list | tuple) and isinstance(step, int):
            said = said[step]
    if isinstance(said, dict):
        said.pop(last, None)


def _by_name(shape: Template) -> dict[str, Parameter]:
    return {one.name: one for one in shape.parameters}


def _narrowed(one: Parameter, document: Document) -> Parameter:
    """A parameter of the shape as the document has it."""
    said = document.parameters.get(one.name, ParameterSaid())
    found = replace(
        one,
        title=said.title or one.title,
        help=said.help or one.help,
        default=one.default if said.default is None else normalised(said.default),
        minimum=one.minimum if said.minimum is None else said.minimum,
        maximum=one.maximum if said.maximum is None else said.maximum,
        choices=said.choices or one.choices,
        is_needed=one.is_needed if said.needed is None else said.needed,
        is_fixed=said.fixed,
    )
    if one.name == "image" and document.images:
        first = document.images[0] if found.default is None else found.default
        return replace(found, type=Type.CHOICE, choices=document.images, default=first)
    if (
        found.type is Type.COUNT
        and isinstance(found.default, int)
        and said.default is None
    ):
        return replace(
            found, default=min(max(found.default, found.minimum), found.maximum)
        )
    return found


def _own(name: str, said: ParameterSaid) -> Parameter:
    usual = Parameter(
        name=name, type=Type(said.type or "text"), title=said.title, help=said.help
    )
    return replace(
        usual,
        default=None if said.default is None else normalised(said.default),
        minimum=usual.minimum if said.minimum is None else said.minimum,
        maximum=usual.maximum if said.maximum is None else said.maximum,
        choices=said.choices,
        is_needed=said.needed is not False and said.type != "flag",
        is_fixed=said.fixed,
        variable=said.variable,
    )


def _wrong(document: Document) -> Iterator[tuple[str, str]]:
    """Every place that cannot be meant, in the order of the document."""
    if document.slug in RESERVED:
        yield "slug", "Choose another one: this is a page's address."
    if not SLUG.fullmatch(document.slug):
        yield (
            "slug",
            "Write small letters, digits and hyphens, at most 40, beginning with a letter.",
        )
    for name, most in (("title", LONGEST_TITLE), ("help", LONGEST_HELP)):
        text = getattr(document, name)
        if not text.strip() or len(text) > most or not text.isprintable():
            yield name, f"Write one line of at most {most} characters."
    shape = BY_SLUG.get(document.shape)
    if shape is None:
        yield "shape", f"There is no such shape. Known are: {', '.join(BY_SLUG)}."
        return
    if document.slug in BY_SLUG and document.slug != document.shape:
        yield (
            "slug",
            f"A template called {document.slug} takes the place of the shipped one, and has its shape.",
        )
    yield from _wrong_parameters(document, shape)
    yield from _wrong_around(document, shape)


def _wrong_around(document: Document, shape: Template) -> Iterator[tuple[str, str]]:
    """Images, variables, volumes, the source and the memory of a GPU."""
    if len(document.images) > MOST_IMAGES or len(set(document.images)) < len(
        document.images
    ):
        yield "images", f"Name at most {MOST_IMAGES} images, each once."
    for at, image in enumerate(document.images):
        if not IMAGE.fullmatch(image):
            yield (
                f"images.{at}",
                "Write an image, as in registry.example.com/team/train:1.",
            )
    if len(document.variables) > MOST_VARIABLES:
        yield "variables", f"At most {MOST_VARIABLES}."
    if refused := refused_variables([*document.variables]):
        yield "variables", refused
    yield from _wrong_files(document, shape)
    if not 0 <= document.gpu_memory <= LARGEST_GPU_MEMORY:
        yield (
            "gpu_memory",
            f"Write GB of memory that one GPU needs, 0 to {LARGEST_GPU_MEMORY}; 0 is any.",
        )


def _wrong_files(document: Document, shape: Template) -> Iterator[tuple[str, str]]:
    source = document.repository
    if not shape.accepts_files and (document.claims or source):
        said = f"{shape.title} takes its program and data from the image: no Git address or volume."
        yield ("claims" if document.claims else "repository"), said
    if len(document.claims) > MOST_CLAIMS:
        yield "claims", f"At most {MOST_CLAIMS}."
    place = Parameter(
        name="path", type=Type.PATH, title="Where a volume is mounted", help=""
    )
    for at, claim in enumerate(document.claims):
        if not CLAIM.fullmatch(claim.name):
            yield (
                f"claims.{at}.name",
                "A volume is called as its claim in a team's namespace.",
            )
        if refused := TESTS[Type.PATH](place, claim.path):
            yield f"claims.{at}.path", refused
    if source is not None and (refused := refused_source(source.url, source.revision)):
        yield "repository", refused


def _wrong_parameters(document: Document, shape: Template) -> Iterator[tuple[str, str]]:
    known = _by_name(shape)
    if len(document.parameters) > MOST_PARAMETERS:
        yield "parameters", f"At most {MOST_PARAMETERS}."
    seen: set[str] = set(document.variables)
    for name, said in document.parameters.items():
        at = f"parameters.{name}"
        if name in known:
            yield from _too_wide(at, said, known[name])
            found = _narrowed(known[name], document)
        else:
            wrong = tuple(_wrong_own(at, name, said, seen))
            yield from wrong
            if wrong:
                continue
            seen.add(said.variable)
            found = _own(name, said)
        yield from _wrong_value(at, found)


def _too_wide(
    at: str, said: ParameterSaid, one: Parameter
) -> Iterator[tuple[str, str]]:
    """What would let a run have more than its shape is made for."""
    if said.type is not None or said.variable:
        yield (
            at,
            f"{one.title} belongs to the shape: its type and variable are the shape's.",
        )
    if said.minimum is not None and said.minimum < one.minimum:
        yield f"{at}.minimum", f"The shape begins at {one.minimum}."
    if said.maximum is not None and said.maximum > one.maximum:
        yield f"{at}.maximum", f"The shape ends at {one.maximum}."
    if said.needed is False and one.is_needed:
        yield f"{at}.needed", f"The shape needs {one.title.lower()}."
    if one.name != "image" and (
        strange := [each for each in said.choices if each not in one.choices]
    ):
        yield f"{at}.choices", f"The shape has no “{strange[0][:40]}”."


def _wrong_own(
    at: str, name: str, said: ParameterSaid, seen: set[str]
) -> Iterator[tuple[str, str]]:
    if not NAME.fullmatch(name) or name in OF_THE_FRAME:
        yield (
            at,
            "Choose another name: small letters, digits and underscores, and none of the form's own.",
        )
    if said.type is None:
        yield (
            f"{at}.type",
            "The shape has no such parameter. One of your own says its type.",
        )
    if not said.title.strip():
        yield f"{at}.title", "Say what people read beside it."
    if not said.variable or (refused := refused_variables([said.variable])):
        yield (
            f"{at}.variable",
            refused if said.variable else "Say in which variable the program finds it.",
        )
    elif said.variable in seen:
        yield f"{at}.variable", f"{said.variable} is set twice."
    if (said.type == "choice") is not bool(said.choices):
        yield f"{at}.choices", "A choice has choices, and nothing else has."


def _wrong_value(at: str, one: Parameter) -> Iterator[tuple[str, str]]:
    if one.minimum > one.maximum:
        yield f"{at}.maximum", f"Not below {one.minimum}, the minimum."
    elif one.default is not None and (refused := TESTS[one.type](one, one.default)):
        yield f"{at}.default", refused
    if one.is_fixed and one.default is None:
        yield f"{at}.fixed", "What nobody changes has a default."
