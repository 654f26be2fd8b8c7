"""Documents that people write: YAML read without being harmed, and in words what is wrong with it. Pure.

A text is small and shallow, has no aliases, and says each key once.
"""

import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any

import yaml
from pydantic import ValidationError

LARGEST = 64_000
DEEPEST = 20
OPENS = (
    yaml.FlowSequenceStartToken,
    yaml.FlowMappingStartToken,
    yaml.BlockSequenceStartToken,
    yaml.BlockMappingStartToken,
)
CLOSES = (yaml.FlowSequenceEndToken, yaml.FlowMappingEndToken, yaml.BlockEndToken)
# PostgreSQL keeps neither in a text.
UNSTORABLE = re.compile("[\x00\ud800-\udfff]")


# What pydantic found, as people say it.
WORDS_OF = {
    "unexpected_keyword_argument": "There is no such key.",
    "extra_forbidden": "There is no such key.",
    "missing": "This is missing.",
    "int_parsing": "Write a whole number.",
    "int_parsing_size": "Write a smaller number.",
    "int_type": "Write a whole number.",
    "int_from_float": "Write a whole number.",
    "finite_number": "Write a number.",
    "bool_parsing": "Write true or false.",
    "bool_type": "Write true or false.",
    "string_type": "Write a text.",
    "tuple_type": "Write a list.",
    "dict_type": "Write keys with values.",
    "mapping_type": "Write keys with values.",
    "dataclass_type": "Write keys with values.",
}
MOST_PROBLEMS = 50


class DocumentRefused(ValueError):
    """A document that cannot be taken; `problems` are (place in the document, what is wrong) pairs."""

    def __init__(self, *problems: tuple[str, str]) -> None:
        super().__init__(
            "; ".join(f"{place}: {what}" if place else what for place, what in problems)
        )
        self.problems = problems


def parse(text: str) -> Any:
    """The value of a YAML text; raises DocumentRefused for what is large, cannot be read, or says a key twice."""
    if len(text.encode("utf-8", "surrogatepass")) > LARGEST:
        raise DocumentRefused(("", "The file is larger than 64 kB."))
    try:
        _look_over(text)
        return yaml.load(text, _Loader)  # noqa: S506  # nosec B506
    except DocumentRefused:
        raise
    except _Twice as error:
        mark = error.problem_mark
        raise DocumentRefused(
            (f"line {mark.line + 1}" if mark else "", str(error.problem))
        ) from error
    except (yaml.YAMLError, RecursionError, ValueError, OverflowError) as error:
        mark = getattr(error, "problem_mark", None)
        where = f"line {mark.line + 1}" if mark else ""
        raise DocumentRefused((where, "This is not YAML that can be read.")) from error


def placed(place: str, what: str) -> str:
    """What is wrong, behind the place where it is."""
    return f"{place}: {what}" if place else what


def uploaded(file: Any) -> str | None:
    """The text of an uploaded file, as much of it as can be a document; None without a file."""
    if file is None:
        return None
    raw: bytes = file.read(LARGEST + 1)
    return raw.decode("utf-8", "replace")


def problems_of(
    error: ValidationError, *, also: Mapping[str, str]
) -> list[tuple[str, str]]:
    """The first 50 places where a value does not fit, in words; `also` are words of this kind of document alone."""
    words = {**WORDS_OF, **also}
    return [
        (
            ".".join(str(part) for part in problem["loc"]),
            words.get(problem["type"], "This value cannot be taken here."),
        )
        for problem in error.errors(
            include_url=False, include_context=False, include_input=False
        )
    ][:MOST_PROBLEMS]


def _look_over(text: str) -> None:
    """Refuse aliases and deep nesting at their first sign: both make small texts cost minutes or gigabytes."""
    depth = 0
    for token in yaml.scan(text):
        if isinstance(token, yaml.AliasToken | yaml.AnchorToken):
            raise DocumentRefused(
                ("", "Anchors and aliases are not taken: write the values out.")
            )
        depth += isinstance(token, OPENS) - isinstance(token, CLOSES)
        if depth > DEEPEST:
            raise DocumentRefused(("", f"Nested deeper than {DEEPEST} levels."))


class _Twice(yaml.constructor.ConstructorError):
    """A mapping says one key twice, and only one of the values could count."""


class _Loader(yaml.SafeLoader):
    """The safe loader, which also refuses a key that is said twice."""

    def construct_mapping(
        self, node: yaml.MappingNode, deep: bool = False
    ) -> dict[Any, Any]:
        """The mapping; raises ConstructorError."""
        said: set[str] = set()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode) and key.value in said:
                raise _Twice(
                    None, None, f"“{key.value[:40]}” is said twice.", key.start_mark
                )
            said |= {key.value} if isinstance(key, yaml.ScalarNode) else set()
        return super().construct_mapping(node, deep=deep)


def unfit(
    place: str, value: Any, *, flags: Collection[str]
) -> Iterator[tuple[str, str]]:
    """Texts that no database keeps, and yes and no where a number belongs, which would be taken for 1 and 0."""
    if isinstance(value, Mapping):
        for key, inner in value.items():
            at = f"{place}.{key}" if place else str(key)
            if UNSTORABLE.search(str(key)):
                yield place, "A key has a character that cannot be kept."
            elif isinstance(inner, bool) and key not in flags:
                yield at, "Write a value here, not yes or no."
            else:
                yield from unfit(at, inner, flags=flags)
    elif isinstance(value, list | tuple):
        for number, inner in enumerate(value):
            yield from unfit(f"{place}.{number}", inner, flags=flags)
    elif isinstance(value, str) and UNSTORABLE.search(value):
        yield place, "The text has a character that cannot be kept."
