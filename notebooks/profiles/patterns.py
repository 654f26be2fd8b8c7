"""Patterns that a free choice is checked with: ones that answer at once, whatever somebody types. Pure.

Python's engine goes back over what it matched. Where a repeated group has a repetition or alternatives of its own, the
ways to match one text double with each character, and JupyterHub stands still for everybody.
"""

import re
from collections.abc import Iterator

MAX_PATTERN, MAX_VALUE, MAX_REPEATS = 300, 400, 3
TOKEN = re.compile(
    r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|\(\?:|\(\?|\(|\)|\||[*+?]|\{\d*,?\d*\}|.",
    re.DOTALL,
)
UNBOUNDED = re.compile(r"[*+]|\{\d*,\}")
BACK_REFERENCE = re.compile(r"\\[1-9]")


def refused_pattern(text: str) -> str:
    """Why a pattern cannot be taken; empty when it can. What can be matched in one way at a time is taken."""
    if len(text) > MAX_PATTERN:
        return f"Write a pattern of at most {MAX_PATTERN} characters."
    try:
        re.compile(text)
    except (re.error, OverflowError, RecursionError):
        return "This is no regular expression of Python."
    return next(_slow(TOKEN.findall(text)), "")


def refused_open_end(text: str) -> str:
    """Why a pattern lets through more than it names: KubeSpawner looks at the beginning of a value alone."""
    is_closed = text.endswith(r"\Z") or (
        text.endswith("$") and not text.endswith(r"\$")
    )
    return (
        ""
        if is_closed and not _has_top_level_choice(text)
        else "End the pattern with $, with | inside of groups."
    )


def guarded(text: str, *, beginnings: tuple[str, ...] = ()) -> str:
    """The pattern for KubeSpawner: the same, for values of bounded length that begin with one of these, if any."""
    bounded = rf"(?=[^\n]{{1,{MAX_VALUE}}}\Z)"
    allowed = f"(?={'|'.join(map(re.escape, beginnings))})" if beginnings else ""
    return f"{bounded}{allowed}{text}"


def _slow(tokens: list[str]) -> Iterator[str]:
    """A sentence for each thing that may take for ever."""
    inner: list[bool] = [
        False
    ]  # of each open group: whether something in it repeats or is one of several
    repeats = 0
    for at, token in enumerate(tokens):
        following = tokens[at + 1] if at + 1 < len(tokens) else ""
        if token == "(?" or BACK_REFERENCE.fullmatch(token):  # noqa: S105 - a part of a pattern
            yield "Write it without looking ahead, flags, names or references back: (?:…) is the only (?…)."
        elif token in ("(", "(?:"):
            inner.append(False)
        elif token == ")":  # noqa: S105
            if inner.pop() and _repeats(following):
                yield "A repeated group has a repetition or a choice inside, which can take for ever."
            inner[-1] = inner[-1] or _repeats(following)
        elif token == "|" or _repeats(token):  # noqa: S105
            inner[-1] = True
        repeats += bool(UNBOUNDED.fullmatch(token))
    if repeats > MAX_REPEATS:
        yield f"At most {MAX_REPEATS} repetitions without an end can be told apart fast enough."


def _repeats(token: str) -> bool:
    return token in ("*", "+") or token.startswith("{")


def _has_top_level_choice(text: str) -> bool:
    depth = 0
    for token in TOKEN.findall(text):
        depth += token.startswith("(") - (token == ")")  # noqa: S105
        if token == "|" and not depth:  # noqa: S105
            return True
    return False
