"""Whether what a person typed is what something is called. Pure."""

import re
from collections.abc import Callable
from dataclasses import dataclass

THOUSANDS = re.compile(r"(?<=\d),(?=\d{3})")
# The sign in "2 × A100", as people type it, too.
TIMES = re.compile(r"×|(?<![^\W_])[x*](?![^\W_])")
TIMES_BEHIND = re.compile(r"(?<![^\W_])(\d+)x(?![^\W_])")

# "ask for 4 a100", "4 x a100", "need a100": a wish for GPUs.
WISH = re.compile(
    r"(?P<ask>(?:ask(?: for)?|get|need|want)\b)?\s*(?P<count>[0-9]{1,4}\b)?\s*(?P<kind>.*)"
)
NO_KIND = re.compile(r"\b(?:gpus?|more)\b")


@dataclass(frozen=True)
class Wish:
    """So many GPUs of a kind, as somebody typed it; `count` is None where no number was typed."""

    count: int | None
    kind: str


def wish_of(q: str) -> Wish | None:
    """What somebody wants who types a number of GPUs or a verb before their kind; None for any other words."""
    found = WISH.fullmatch(_plain(q).strip())
    if found is None or not (found["ask"] or found["count"]):
        return None
    kind = " ".join(NO_KIND.sub(" ", found["kind"]).split())
    if kind == found["kind"] == "":
        return None
    return Wish(int(found["count"]) if found["count"] else None, kind)


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
