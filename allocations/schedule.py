"""When what about a holding happens: reminders, its end, grace, and what becomes of work that still runs. Pure."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum

# How long before the end people are told. A holding is told of only what lies in its second half.
REMINDERS = (timedelta(days=7), timedelta(days=1), timedelta(hours=1))
LONGEST_GRACE, LONGEST_DRAIN = 168, 720  # hours


class WhenOver(StrEnum):
    """What becomes of work that still runs on GPUs that are no longer held."""

    FINISH = "finish"
    DRAIN = "drain"
    STOP = "stop"

    @property
    def words(self) -> str:
        """As a choice of the catalogue."""
        return {
            "finish": "it may finish, while nobody else wants the GPUs",
            "drain": "it may go on for some hours, then it is stopped",
            "stop": "it is stopped at once",
        }[self.value]


class Provisioner(StrEnum):
    """What makes a granted allocation true."""

    KUBERNETES = "kubernetes"
    JUPYTERHUB = "jupyterhub"
    AZURE = "azure"
    OPENAI = "openai"
    MANUAL = "manual"

    @property
    def words(self) -> str:
        """As pages say it."""
        return {
            "kubernetes": "made by the portal on the cluster",
            "jupyterhub": "started by the portal in the cluster's JupyterHub",
            "azure": "made by the portal in Azure",
            "openai": "made by the portal in Azure OpenAI",
            "manual": "carried out by a person",
        }[self.value]


# Those that the portal makes in Azure, where it is connected.
IN_AZURE = frozenset({Provisioner.AZURE, Provisioner.OPENAI})


class State(StrEnum):
    """Where an allocation stands between its grant and its end."""

    BOOKED = "booked"
    SETTING_UP = "setting_up"
    HELD = "held"
    ENDING_SOON = "ending_soon"
    IN_GRACE = "in_grace"
    ENDED = "ended"
    FAILED = "failed"

    @property
    def words(self) -> str:
        """As pages say it."""
        return {
            "booked": "Booked",
            "setting_up": "Setting up",
            "held": "Held",
            "ending_soon": "Ending soon",
            "in_grace": "In its grace",
            "ended": "Ended",
            "failed": "Failed",
        }[self.value]

    @property
    def tone(self) -> str:
        """The badge's tone."""
        tones = {
            "booked": "moving",
            "setting_up": "moving",
            "held": "good",
            "ended": "past",
            "failed": "bad",
        }
        return tones.get(self.value, "ending")


class Phase(StrEnum):
    """How far its provisioner has come with an allocation.

    What is stuck is tried again and will hardly come to be before somebody does something; what has failed never will.
    """

    PENDING = "pending"
    READY = "ready"
    STUCK = "stuck"
    FAILED = "failed"


@dataclass(frozen=True)
class Status:
    """What its provisioner says of an allocation; `message` is why it is not ready, in a sentence for people.

    What nobody sees to is given up at `gives_up_at`, for the reason `failure` where that is not the message.
    """

    phase: Phase
    message: str = ""
    gives_up_at: datetime | None = None
    failure: str = ""

    def is_given_up(self, now: datetime) -> bool:
        """Whether it could not be made, or nobody saw to it in time."""
        is_late = self.gives_up_at is not None and self.gives_up_at <= now
        return self.phase is Phase.FAILED or is_late


SOON = timedelta(days=3)


def ends_soon(*, since: datetime, until: datetime, now: datetime) -> bool:
    """Within the last quarter of a short holding, else the last three days: a day's work does not begin so."""
    return until - now <= min(SOON, (until - since) / 4)


def state_of(
    status: Status, *, starts: datetime, until: datetime, ended: bool, now: datetime
) -> State:
    """The state of an allocation; what is not there yet is being set up and never ends soon."""
    if ended:
        return State.FAILED if status.phase is Phase.FAILED else State.ENDED
    if status.phase is not Phase.READY:
        return State.SETTING_UP if status.phase is Phase.PENDING else State.FAILED
    if until <= now:
        return State.IN_GRACE
    return (
        State.ENDING_SOON
        if ends_soon(since=starts, until=until, now=now)
        else State.HELD
    )


@dataclass(frozen=True, kw_only=True)
class Terms:
    """How a holding ends: kept `grace_hours` longer without charge, then what still runs is dealt with.

    `drain_hours` counts from the moment at which the quota goes down, and only for `drain`.
    """

    grace_hours: int = 0
    when_over: WhenOver = WhenOver.FINISH
    drain_hours: int = 0

    def kept_until(self, until: datetime) -> datetime:
        """When the quota goes down."""
        return until + timedelta(hours=self.grace_hours)

    def stop_at(self, ended: datetime) -> datetime | None:
        """When work that still runs is stopped, for a quota that went down at `ended`; None when it may finish."""
        if self.when_over is WhenOver.FINISH:
            return None
        return ended + timedelta(
            hours=self.drain_hours if self.when_over is WhenOver.DRAIN else 0
        )

    def where_nothing_is_stopped(self) -> "Terms":
        """The same on a cluster that the portal does not write to: what runs there may finish."""
        return replace(self, when_over=WhenOver.FINISH, drain_hours=0)


NO_TERMS = Terms()
# What holds data, which is lost with it.
WITH_DATA = frozenset({"volume", "namespace"})
# There is one volume of a name, and one namespace of an environment: both are had again once they have ended.
HAD_AGAIN_AFTER_THE_END = frozenset({"volume", "namespace"})

# More of the same in one place adds up: asked for at once, it is larger until the old end.
KEPT_IN_AZURE = {
    "reservation": "To keep it longer, book it from this end on: it then goes on as it is.",
    "openai": "To keep it longer, ask for it again shortly before this end: both are paid until then.",
}


def kept_by(offering: str) -> str:
    """How what takes no GPUs is kept longer, in a sentence."""
    if offering in HAD_AGAIN_AFTER_THE_END:
        return "Ask for it again once it has ended, and it stays as it is."
    return KEPT_IN_AZURE.get(offering, "Ask for it again to keep it longer.")


TAKEN_DOWN = "Ends; a platform lead asks, then takes it down"
DELETED = "Ends; the portal deletes it in Azure"


@dataclass(frozen=True)
class Step:
    """Something that comes: `what` is its stable code, `words` a sentence without its date."""

    at: datetime
    what: str
    words: str


def reminders(starts: datetime, until: datetime) -> tuple[datetime, ...]:
    """When people are reminded of an end, the earliest first; a short holding has fewer reminders."""
    length = until - starts
    return tuple(until - lead for lead in REMINDERS if 2 * lead <= length)


def next_reminder(
    starts: datetime, until: datetime, *, after: datetime
) -> datetime | None:
    """The first reminder later than a moment; None when none is left."""
    return next((at for at in reminders(starts, until) if at > after), None)


def next_steps(
    *,
    starts: datetime,
    until: datetime,
    terms: Terms,
    now: datetime,
    remind_at: datetime | None = None,
    of_gpus: bool = True,
    at_end: str = TAKEN_DOWN,
) -> list[Step]:
    """Everything that will happen to a holding after now, in order; `remind_at` is the next reminder to be sent.

    `at_end` says what becomes of what is no GPUs.
    """
    steps = [
        Step(at, "reminder", "The team is reminded of the end")
        for at in reminders(starts, until)
        if remind_at is not None and at >= remind_at
    ]
    ends = _ends(until, terms) if of_gpus else [Step(until, "end", at_end)]
    return [step for step in [*steps, *ends] if step.at > now]


def _ends(until: datetime, terms: Terms) -> Iterator[Step]:
    kept = terms.kept_until(until)
    if terms.grace_hours:
        yield Step(until, "end", "Ends; kept without charge for a while")
        yield Step(kept, "grace_end", "The GPUs go back to the pool by themselves")
    else:
        yield Step(until, "end", "Ends; the GPUs go back to the pool by themselves")
    stop = terms.stop_at(kept)
    if stop is not None:
        what = "drain" if terms.when_over is WhenOver.DRAIN else "stop"
        yield Step(stop, what, "Work that still runs on them is stopped")
