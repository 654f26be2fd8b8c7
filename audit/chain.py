"""The hash chain over events: pure, so that anybody can check it with nothing but the rows."""

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

GENESIS = "0" * 64


@dataclass(frozen=True)
class Link:
    """One event as the chain sees it."""

    seq: int
    body: Mapping[str, Any]
    previous: str
    hash: str


@dataclass(frozen=True)
class Verdict:
    """Whether a chain holds; `broken_at` is the first sequence number that does not fit, None when all do."""

    checked: int
    broken_at: int | None
    reason: str


def digest(*, seq: int, body: Mapping[str, Any], previous: str) -> str:
    """SHA-256 over the previous hash, the number and the canonical JSON of the body, in hexadecimal."""
    text = json.dumps(
        [previous, seq, body], sort_keys=True, separators=(",", ":"), ensure_ascii=False
    )
    return hashlib.sha256(text.encode()).hexdigest()


@dataclass(frozen=True)
class Checkpoint:
    """An event's number and hash as they were noted somewhere else."""

    seq: int
    hash: str


def verify(
    links: Iterable[Link],
    *,
    after: int = 0,
    previous: str = GENESIS,
    known: Iterable[Checkpoint] = (),
) -> Verdict:
    """Walk links in order and name the first gap, changed event, or event that differs from what is `known` of it.

    A chain whose newest events were cut off is whole in itself: only what is known of them shows that they are gone.
    """
    noted: dict[int, set[str]] = {}
    for event in known:
        noted.setdefault(event.seq, set()).add(event.hash)
    checked = 0
    for link in links:
        if link.seq != after + 1:
            return Verdict(checked, after + 1, f"Event {after + 1} is missing.")
        if link.previous != previous:
            return Verdict(
                checked, link.seq, f"Event {link.seq} does not follow event {after}."
            )
        if digest(seq=link.seq, body=link.body, previous=previous) != link.hash:
            return Verdict(
                checked, link.seq, f"Event {link.seq} was changed after it was written."
            )
        if noted.get(link.seq, set()) - {link.hash}:
            return Verdict(
                checked,
                link.seq,
                f"Event {link.seq} is not the one that was noted: it was rewritten.",
            )
        after, previous, checked = link.seq, link.hash, checked + 1
    newest = max(noted, default=0)
    if newest > after:
        return Verdict(checked, after + 1, _cut_off(after + 1, newest))
    return Verdict(checked, None, f"{checked} events, unbroken.")


def _cut_off(first: int, last: int) -> str:
    if first == last:
        return f"Event {first}, the newest that is known, is missing."
    return f"Events {first} to {last}, the newest that are known, are missing."
