"""What the chain answers to "what stops so many more?", in words. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from capacity.chain.links import Layer, Link, Question, blocking, tightest
from ui.amounts import gpus, span

# As Azure calls the quota of all spot machines, in small letters.
SPOT = "lowprioritycores"
# How old a reading may be before it is said how old it is: Azure is read every ten minutes, clusters twice a minute.
FRESH = {
    Layer.FAMILY: timedelta(minutes=30),
    Layer.REGIONAL: timedelta(minutes=30),
    Layer.POOL: timedelta(minutes=30),
    Layer.RESERVATION: timedelta(minutes=30),
    Layer.NODES: timedelta(minutes=5),
    Layer.QUEUE: timedelta(minutes=5),
    Layer.NAMESPACE: timedelta(minutes=5),
}


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """The answer: whether so many fit, in a sentence, what would stop it next, and what can be done about the first."""

    fits: bool
    sentence: str
    then: str = ""
    advice: str = ""
    stopped_by: Link | None = None


def verdict(
    chain: Sequence[Link], more: int, *, product: str, question: Question
) -> Verdict:
    """What stops so many GPUs more, the tightest link first."""
    stops = blocking(chain, more)
    asked = gpus(more, product)
    if not stops:
        closest = tightest(chain)
        if closest is None:
            return Verdict(
                fits=True,
                sentence=f"Nothing that the portal can read limits {asked} more.",
            )
        doing = "can be granted" if question is Question.GRANT else "can start"
        return Verdict(
            fits=True,
            sentence=f"{asked} more {doing}. The tightest link is {called(closest)}: {closest.room} left.",
        )
    first, *others = stops
    return Verdict(
        fits=False,
        sentence=f"{asked} more: stopped at {called(first)}, {_left(first)}.",
        then=" ".join(f"Then {called(one)} stops it: {_left(one)}." for one in others),
        advice=SHUT if first.is_shut else ADVICE[first.layer, question],
        stopped_by=first,
    )


def _left(link: Link) -> str:
    return "which admits nothing now" if link.is_shut else f"{link.room} left"


def age(link: Link, now: datetime) -> str:
    """How old what is said of a link is, where that is older than it may be; else empty."""
    if (
        link.seen_at is None
        or link.layer not in FRESH
        or now - link.seen_at <= FRESH[link.layer]
    ):
        return ""
    return f"as of {span(now - link.seen_at)} ago"


def called(link: Link) -> str:
    """A link as the subject of a sentence: "the maximum of node pool a100"."""
    name = f" {link.name}" if link.name else ""
    return {
        Layer.FAMILY: f"the subscription quota of{name}",
        Layer.REGIONAL: regional(link.name),
        Layer.POOL: f"the maximum of node pool{name}",
        Layer.NODES: f"the nodes of pool{name}" if name else "the nodes that there are",
        Layer.QUEUE: "the team's ClusterQueue",
        Layer.NAMESPACE: "the namespace's ResourceQuota",
    }.get(link.layer, link.layer.words)


def regional(name: str) -> str:
    """The quota that all machines of a region share; those on spot have one of their own."""
    shared = "spot machines" if name.casefold() == SPOT else "the region"
    return f"the subscription quota of {shared}"


INCREASE_ADVICE = "An increase takes days: ask for it now."
SHUT = "The queue is stopped, or Kueue says that it is not active: a platform lead sees to it."
_POOL = "A platform lead raises the pool's maximum; nodes come once work needs them."
_NODES = "No autoscaler adds nodes here: a platform lead does."
ADVICE = {
    (Layer.FAMILY, Question.GRANT): INCREASE_ADVICE,
    (Layer.FAMILY, Question.START): INCREASE_ADVICE,
    (Layer.REGIONAL, Question.GRANT): INCREASE_ADVICE,
    (Layer.REGIONAL, Question.START): INCREASE_ADVICE,
    (Layer.POOL, Question.GRANT): _POOL,
    (Layer.POOL, Question.START): _POOL,
    (Layer.NODES, Question.GRANT): _NODES,
    (Layer.NODES, Question.START): _NODES,
    (Layer.QUEUE, Question.START): "Ask for more, or wait until work of the team ends.",
    (
        Layer.NAMESPACE,
        Question.START,
    ): "Ask for more; the portal sets this quota to what the team holds and may borrow.",
}
