"""Texts that claim to be YAML, read without being harmed: small, shallow, without aliases, each key once. Pure."""

import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any

import yaml

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


class PolicyRefused(ValueError):
    """A document that is no policy; `problems` are (place in the document, what is wrong) pairs."""

    def __init__(self, *problems: tuple[str, str]) -> None:
        super().__init__("; ".join(f"{place}: {what}" if place else what for place, what in problems))
        self.problems = problems


def parse(text: str) -> Any:
    """The value of a YAML text; raises PolicyRefused for what is large, cannot be read, or says a key twice."""
    if len(text.encode("utf-8", "surrogatepass")) > LARGEST:
        raise PolicyRefused(("", "The file is larger than 64 kB."))
    try:
        _look_over(text)
        return yaml.load(text, _Loader)  # noqa: S506  # nosec B506
    except PolicyRefused:
        raise
    except _Twice as error:
        mark = error.problem_mark
        raise PolicyRefused((f"line {mark.line + 1}" if mark else "", str(error.problem))) from error
    except (yaml.YAMLError, RecursionError, ValueError, OverflowError) as error:
        mark = getattr(error, "problem_mark", None)
        where = f"line {mark.line + 1}" if mark else ""
        raise PolicyRefused((where, "This is not YAML that can be read.")) from error


def _look_over(text: str) -> None:
    """Refuse aliases and deep nesting at their first sign: both make small texts cost minutes or gigabytes."""
    depth = 0
    for token in yaml.scan(text):
        if isinstance(token, yaml.AliasToken | yaml.AnchorToken):
            raise PolicyRefused(("", "Anchors and aliases are not taken: write the values out."))
        depth += isinstance(token, OPENS) - isinstance(token, CLOSES)
        if depth > DEEPEST:
            raise PolicyRefused(("", f"Nested deeper than {DEEPEST} levels."))


class _Twice(yaml.constructor.ConstructorError):
    """A mapping says one key twice, and only one of the values could count."""


class _Loader(yaml.SafeLoader):
    """The safe loader, which also refuses a key that is said twice."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        """The mapping; raises ConstructorError."""
        said: set[str] = set()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode) and key.value in said:
                raise _Twice(None, None, f"“{key.value[:40]}” is said twice.", key.start_mark)
            said |= {key.value} if isinstance(key, yaml.ScalarNode) else set()
        return super().construct_mapping(node, deep=deep)


def unfit(place: str, value: Any, *, flags: Collection[str]) -> Iterator[tuple[str, str]]:
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
