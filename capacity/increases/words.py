"""What a request for more quota tells people, the same on page and in the API. Pure."""

from dataclasses import dataclass
from datetime import datetime

from capacity.increases.states import State
from ui.amounts import moment

SUPPORT = "A support request in Azure, of the type “service and subscription limits”, is the way from here."


@dataclass(frozen=True, kw_only=True)
class Told:
    """What is said of a request: its state, what Azure or the portal said last, and since when."""

    state: State
    message: str
    since: datetime


def sentence(told: Told, now: datetime) -> str:
    """How a request stands."""
    at, message = moment(told.since, now), told.message
    match told.state:
        case State.NEW:
            return (
                f"It is not sent yet, and tried again: {message}"
                if message
                else "The portal sends it now."
            )
        case State.SENT:
            said = f" “{message}”" if message else ""
            return f"Azure has had it since {at}.{said} Some are decided within minutes, others take days."
        case State.GRANTED:
            return f"Azure granted it on {at}."
        case State.REFUSED:
            return f"Azure refused it on {at}: {message} {SUPPORT}"
        case State.FAILED:
            return f"The portal gave it up on {at}: {message}"
        case _:
            return f"It was withdrawn on {at}."
