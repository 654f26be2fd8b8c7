"""How long a notebook may be idle and may run, in words, before and after it is launched. Pure."""

from datetime import timedelta

from notebooks.profiles.document import Document
from notebooks.profiles.idle import Reclaim, notice
from notebooks.profiles.publishing import most_gpus


def length(minutes: int) -> str:
    """ "90 min", "2 h", "3 days": exact, in the largest unit that is."""
    if minutes % 1_440 == 0 and minutes > 1_440:
        return f"{minutes // 1_440} days"
    return f"{minutes // 60} h" if minutes % 60 == 0 else f"{minutes} min"


def idle_words(document: Document, reclaim: Reclaim) -> str:
    """What becomes of a server that nobody uses, where its hub treats idle ones so."""
    if not most_gpus(document):
        return "It goes on until you stop it."
    if document.idle_minutes is None or reclaim is Reclaim.OFF:
        return "It goes on, and keeps its GPUs, until you stop it."
    after = length(document.idle_minutes)
    if reclaim is Reclaim.WARN:
        return f"Unused for {after}, you are told. It goes on, and keeps its GPUs, until you stop it."
    before = length(
        int(notice(timedelta(minutes=document.idle_minutes)).total_seconds()) // 60
    )
    return f"Unused for {after}, it is stopped. You are told {before} before, and can keep it. Its volumes stay."


def limit_words(document: Document) -> str:
    """How long a server of a profile runs at most."""
    if document.hours is None:
        return "As long as you leave it."
    return (
        f"{length(document.hours * 60)} at most, then it is stopped. Its volumes stay."
    )
