"""How a reservation stands, in a word and a sentence."""

from dataclasses import dataclass
from datetime import datetime

from capacity.models import Orphan, Reservation
from capacity.orphans.comparing import OrphanKind
from capacity.reservations.states import State
from ui.amounts import ago, ahead, day, machines


@dataclass(frozen=True, kw_only=True)
class Standing:
    """A badge's tone and word, and the sentence beside it."""

    tone: str
    word: str
    sentence: str


def standing(row: Reservation, now: datetime, *, grant_waits: bool) -> Standing:
    """Where a reservation is, what Azure works on, or why it is not what is wanted.

    `grant_waits` tells whether something was granted of it that Azure has not made yet, which fails if it is refused.
    """
    state = State(row.state)
    if row.parked_at is not None and state is not State.RELEASED:
        return Standing(tone="bad", word="Parked", sentence=row.message)
    if state in (State.RELEASING, State.RELEASED):
        return _on_its_way_out(row, state, now)
    if row.is_refused:
        return Standing(
            tone="bad", word="Refused", sentence=_refused(row, grant_waits, now)
        )
    if state is State.PENDING or not row.is_true:
        return _on_its_way_in(row, state, now)
    return _in_force(row)


def place(row: Reservation | Orphan) -> str:
    """ "eastus, zone 1"."""
    return f"{row.region}, zone {row.zone}" if row.zone else row.region


def _on_its_way_out(row: Reservation, state: State, now: datetime) -> Standing:
    if state is State.RELEASING:
        usual = "The portal releases it in Azure: its pool of nodes, if it has one, then its machines, then its group."
        return Standing(
            tone=state.tone, word=state.words, sentence=row.message or usual
        )
    if row.reserved_at is None and row.refusal:
        return Standing(
            tone="bad", word="Refused", sentence=f"{row.refusal} Nothing is reserved."
        )
    gone = f"Released on {day(row.released_at, now)}. " if row.released_at else ""
    return Standing(
        tone=state.tone,
        word=state.words,
        sentence=f"{gone}Nothing of it is left in Azure.",
    )


def _refused(row: Reservation, grant_waits: bool, now: datetime) -> str:
    if grant_waits:
        return f"{row.refusal} What was granted with it fails, and its budget is free again."
    again = f"in {ahead(row.requeue_at, now)}" if row.requeue_at > now else "now"
    there = f"Azure has {row.held} of {machines(row.machines)}, all of which are paid."
    return f"{row.refusal} {there} It is tried again {again}."


def _on_its_way_in(row: Reservation, state: State, now: datetime) -> Standing:
    if row.message:
        again = (
            ""
            if row.operation or row.requeue_at <= now
            else f" It is tried again in {ahead(row.requeue_at, now)}."
        )
        word = "Waits for Azure" if state is State.PENDING else "Change waits for Azure"
        return Standing(tone="waiting", word=word, sentence=f"{row.message}{again}")
    word = state.words if state is State.PENDING else "Being changed"
    if state is State.PENDING and not row.held:
        what = f"{machines(row.machines)}: all of them, or none"
    else:
        what = f"{row.held} → {machines(row.machines)}"
    if row.operation:
        began = ago(datetime.fromisoformat(row.operation["since"]), now)
        return Standing(
            tone="moving",
            word=word,
            sentence=f"Azure works on {what}. It began {began}.",
        )
    return Standing(
        tone="moving",
        word=word,
        sentence=f"The portal asks Azure for {what}, within seconds.",
    )


def _in_force(row: Reservation) -> Standing:
    if row.over:
        runs = "1 runs" if row.over == 1 else f"{row.over} run"
        sentence = f"{runs} beyond what is reserved, without a guarantee."
        return Standing(tone="waiting", word="Over-allocated", sentence=sentence)
    if row.message:
        return Standing(tone="waiting", word=State.RESERVED.words, sentence=row.message)
    if not row.idle:
        sentence = f"{_all(row.held)} in use."
    elif not row.used:
        sentence = f"{_all(row.held)} idle, and paid."
    else:
        sentence = f"{row.used} of {row.held} are in use; {row.idle} {_is(row.idle)} idle, and paid."
    return Standing(
        tone=State.RESERVED.tone, word=State.RESERVED.words, sentence=sentence
    )


def _all(count: int) -> str:
    return "It is" if count == 1 else f"All {count} are"


def _is(count: int) -> str:
    return "is" if count == 1 else "are"


def orphan_standing(row: Orphan) -> Standing:
    """In which way the portal and Azure differ, and what is done about it."""
    kind = row.of
    if row.is_releasing:
        asked = f"{row.release_asked_by} had it released."
        word = "Parked" if row.parked_at else "Being released"
        tone = "bad" if row.parked_at else "ending"
        return Standing(tone=tone, word=word, sentence=row.message or asked)
    if row.message:
        return Standing(tone=kind.tone, word=kind.words, sentence=row.message)
    sentence = {
        OrphanKind.ORPHANED: _orphaned(row),
        OrphanKind.FOREIGN: "Without the portal’s mark: the portal never touches it.",
        OrphanKind.MISSING: f"The portal has {row.expected} on record, and reserves it again when it looks next.",
        OrphanKind.DIFFERS: f"The portal has {row.expected} on record, and asks for that number when it looks next.",
    }[kind]
    return Standing(tone=kind.tone, word=kind.words, sentence=sentence)


def _orphaned(row: Orphan) -> str:
    if row.associated:
        return (
            f"{machines(row.associated)} {'uses' if row.associated == 1 else 'use'} it."
        )
    return (
        f"Tagged for {row.tagged_team}."
        if row.tagged_team
        else "No team was granted it."
    )
