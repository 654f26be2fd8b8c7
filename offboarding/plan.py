"""What a team's leaving comes to: its steps with their dates, what may be deleted at once, what was seen. Pure."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

LEAST_BRAKE = 10
BRAKE_PERCENT = 5
HELD_BACK = "More was to be deleted at once than usual. Until somebody lets this one go on, it can be restored."
STAY_WITHDRAWN = "Requests that were withdrawn stay so."
# By whether its GPUs had been given back when it was restored.
BACK = {
    False: f"Its GPUs had not ended yet: the team holds and pays them as before. {STAY_WITHDRAWN}",
    True: f"Everything but the GPUs is back. {STAY_WITHDRAWN}",
}
GOES = "The spaces with their disks. Nobody can undo it."


@dataclass(frozen=True, kw_only=True)
class Story:
    """A departure as far as it has come; `end` is empty, `withdrawn`, `restored` or `gone`."""

    asked_at: datetime
    asked_by: str
    leaves_at: datetime
    retained_until: datetime
    days: int
    hold: bool
    confirmed_at: datetime | None = None
    confirmed_by: str = ""
    ended_at: datetime | None = None
    ended_by: str = ""
    end: str = ""
    is_held_back: bool = False
    # Whether its GPUs were given back before it was restored.
    took_gpus: bool = False
    # Whether work has stopped on every cluster that is left.
    is_stopped: bool = True

    def goes_at_once(self, now: datetime) -> bool:
        """Whether it waits for its confirmation alone, so that its dates follow from that: its own has passed."""
        return self.confirmed_at is None and not self.end and self.leaves_at <= now

    def deleted_at(self, now: datetime) -> datetime:
        """When everything is deleted for good, if it is confirmed now where it is not yet."""
        kept = timedelta(days=self.days)
        return now + kept if self.goes_at_once(now) else self.retained_until


@dataclass(frozen=True)
class Step:
    """One dated step; `phase` is past, now or future."""

    phase: str
    title: str
    at: datetime | None
    why: str = ""
    who: str = ""
    tone: str = ""


def most_at_once(present: int) -> int:
    """How many places may be deleted in one sweep without a person looking: ten, or five in a hundred."""
    return max(LEAST_BRAKE, present * BRAKE_PERCENT // 100)


@dataclass(frozen=True)
class Due:
    """A place whose time to be deleted has come, with what was said of its departure."""

    place: int
    departure: int
    is_held_back: bool = False
    is_agreed: bool = False


def held_back_of(due: Sequence[Due], *, present: int) -> set[int]:
    """The departures to hold back now: all that nobody looked at, when their places are too many at once.

    What was held back stays so until a person agrees: it does not go because others went or were restored meanwhile.
    """
    fresh = [row for row in due if not (row.is_held_back or row.is_agreed)]
    return (
        {row.departure for row in fresh}
        if len(fresh) > most_at_once(present)
        else set()
    )


def may_delete(due: Sequence[Due]) -> list[int]:
    """Which of the due places a sweep may delete: those that are not held back, and what a person agreed to."""
    return [row.place for row in due if row.is_agreed or not row.is_held_back]


def fingerprint(content: Mapping[str, Any]) -> str:
    """Sixteen hex digits that differ as soon as something of what goes does."""
    text = json.dumps(content, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def steps(story: Story, *, now: datetime) -> list[Step]:
    """What happened, what moves now, and what comes with its date, in order."""
    asked = Step("past", "Asked for", story.asked_at, who=story.asked_by)
    if story.end == "withdrawn":
        return [
            asked,
            Step(
                "past",
                "Taken back",
                story.ended_at,
                "Nothing was changed.",
                story.ended_by,
            ),
        ]
    if story.end == "restored":
        back = Step(
            "past",
            "Restored",
            story.ended_at,
            BACK[story.took_gpus],
            story.ended_by,
            "good",
        )
        before = [_stops(story, now)] if story.took_gpus else []
        return [asked, _confirmed(story), *before, back]
    return [asked, _confirmed(story), _stops(story, now), *_later(story, now)]


def _confirmed(story: Story) -> Step:
    if story.confirmed_at is None:
        why = "Nothing happens until a platform lead confirms."
        return Step("now", "Waits to be confirmed", None, why, tone="waiting")
    if story.leaves_at <= story.confirmed_at:
        held = ""
    elif story.hold:
        held = " Nothing new starts; what runs may finish."
    else:
        held = " Work goes on as before, until then."
    why = f"Open requests are withdrawn for good and new ones refused.{held}"
    return Step("past", "Confirmed", story.confirmed_at, why, story.confirmed_by)


def _stops(story: Story, now: datetime) -> Step:
    why = "What still runs is stopped, the GPUs go back to the pool, and the team’s people lose their access."
    if story.goes_at_once(now):
        why = f"As soon as it is confirmed: {why[0].lower()}{why[1:]}"
        return Step("future", "Work stops", None, why)
    phase = _phase(story, story.leaves_at, now)
    if phase == "past" and not story.is_stopped and not story.end:
        return Step("now", "Work is being stopped", story.leaves_at, why, tone="moving")
    return Step(phase, "Work stops", story.leaves_at, why)


def _later(story: Story, now: datetime) -> list[Step]:
    days = f"{story.days} day{'' if story.days == 1 else 's'}"
    if story.end == "gone":
        return [
            Step(
                "past",
                "Deleted for good",
                story.ended_at,
                "Nothing is left on a cluster.",
            )
        ]
    if story.is_stopped and _phase(story, story.retained_until, now) == "past":
        if story.is_held_back:
            return [
                Step(
                    "now",
                    "Deleting waits for a platform lead",
                    story.retained_until,
                    HELD_BACK,
                    tone="waiting",
                )
            ]
        why = GOES
        return [Step("now", "Being deleted", story.retained_until, why, tone="moving")]
    gone = (
        Step(
            "future", "Deleted for good", None, f"{days} after work has stopped. {GOES}"
        )
        if story.goes_at_once(now)
        else Step("future", "Deleted for good", story.retained_until, GOES)
    )
    if story.is_stopped and _phase(story, story.leaves_at, now) == "past":
        why = "The spaces and their disks stay as they are; one click restores them."
        return [Step("now", f"Kept for {days}", None, why, tone="ending"), gone]
    return [
        Step(
            "future",
            f"Kept for {days}",
            None,
            "Until then one click restores everything but the GPUs.",
        ),
        gone,
    ]


def _phase(story: Story, at: datetime, now: datetime) -> str:
    return "past" if story.confirmed_at is not None and at <= now else "future"
