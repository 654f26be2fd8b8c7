"""Whether what a person typed is what something is called. Pure."""

import re
from collections.abc import Callable

THOUSANDS = re.compile(r"(?<=\d),(?=\d{3})")
# The sign in "2 × A100", as people type it, too.
TIMES = re.compile(r"×|(?<![^\W_])[x*](?![^\W_])")
TIMES_BEHIND = re.compile(r"(?<![^\W_])(\d+)x(?![^\W_])")


def matcher(q: str) -> Callable[[str], bool]:
    """Tells whether every word of `q` begins a word of a text, or a part of one: "corpus" is in "my-corpus"."""
    parts = [re.compile(rf"(?<![^\W_]){re.escape(part)}") for part in _plain(q).split()]

    def matches(text: str) -> bool:
        plain = _plain(text)
        return all(part.search(plain) for part in parts)

    return matches


def _plain(text: str) -> str:
    """Without what is typed in several ways: capitals, commas within numbers, and × between a number and a thing."""
    text = THOUSANDS.sub("", text.casefold())
    return TIMES.sub(" ", TIMES_BEHIND.sub(r"\1 ", text))
