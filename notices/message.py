"""What a notice says, whichever way it goes: pure."""

import re
from dataclasses import dataclass
from typing import Any

MARKS = ("ok", "no", "note", "allowed")
LONGEST_TITLE = 150
LONGEST_SENTENCE = 1000
LONGEST_WORDS = 200
MOST_FACTS = 12
MOST_RULES = 20
BREAKS = re.compile(r"[\s\x00-\x1f\x7f-\x9f\u2028\u2029]+")
# They turn the direction of what follows, so that it reads as something else.
TURNING = re.compile(r"[\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff]")


@dataclass(frozen=True)
class Message:
    """A title, the sentence that matters, what is known (label, value), the rules (mark, text, limit), one button.

    A mark is `ok`, `no` or `note`; `action` is the label of the button that opens the page.
    """

    title: str
    sentence: str
    facts: tuple[tuple[str, str], ...] = ()
    rules: tuple[tuple[str, str, str], ...] = ()
    action: str = "Open the page"

    def tidy(self) -> "Message":
        """The same in single lines of bounded length, without characters that a mail or a database refuses."""
        return Message(
            title=one_line(self.title, LONGEST_TITLE) or "A notice",
            sentence=one_line(self.sentence, LONGEST_SENTENCE),
            facts=tuple(
                (one_line(label, LONGEST_WORDS), one_line(value, LONGEST_WORDS))
                for label, value in self.facts[:MOST_FACTS]
            ),
            rules=tuple(
                (
                    mark if mark in MARKS else "note",
                    one_line(text, LONGEST_WORDS),
                    one_line(limit, LONGEST_WORDS),
                )
                for mark, text, limit in self.rules[:MOST_RULES]
            ),
            action=one_line(self.action, 60) or "Open the page",
        )

    def as_json(self) -> dict[str, Any]:
        """What is stored."""
        return {
            "title": self.title,
            "sentence": self.sentence,
            "facts": [list(fact) for fact in self.facts],
            "rules": [list(rule) for rule in self.rules],
            "action": self.action,
        }

    @classmethod
    def from_json(cls, stored: dict[str, Any]) -> "Message":
        """What was stored."""
        return cls(
            title=str(stored["title"]),
            sentence=str(stored["sentence"]),
            facts=tuple((str(label), str(value)) for label, value in stored["facts"]),
            rules=tuple(
                (str(mark), str(text), str(limit))
                for mark, text, limit in stored["rules"]
            ),
            action=str(stored["action"]),
        )


def one_line(text: str, most: int) -> str:
    """The text without line breaks and control characters, at most `most` characters of it."""
    plain = TURNING.sub("", str(text)).encode("utf-8", "replace").decode()
    plain = BREAKS.sub(" ", plain).strip()
    return plain if len(plain) <= most else plain[: most - 1].rstrip() + "…"
