"""One iteration of the random walk: what may happen in it, how often, and what must have happened in many of them."""

from random import Random

from tests.soak.asking import PEOPLE
from tests.soak.faults import FAULTS
from tests.soak.leading import LEADS
from tests.soak.losing import LOSING
from tests.soak.meddling import OTHERS
from tests.soak.parting import LEAVING
from tests.soak.rest import wrong
from tests.soak.walk import Fault, Operation, Walk
from tests.soak.walking import Place, Town
from tests.soak.working import WORKERS

OPERATIONS: dict[Operation, int] = {
    **PEOPLE,
    **LEADS,
    **OTHERS,
    **LEAVING,
    **LOSING,
    **WORKERS,
}
GOES_WRONG: dict[Fault, int] = dict(FAULTS.items())
# What operations come to, each of which is to be seen; the rarest come once in some twenty iterations.
DONE = {
    "ask for gpus",
    "ask for notebook",
    "ask for volume",
    "ask for endpoint",
    "ask for a namespace",
    "book gpus",
    "cancel a booking",
    "let go",
    "edit",
    "answer",
    "withdraw",
    "renew",
    "give back",
    "run",
    "approve",
    "approve fewer",
    "reject",
    "ask back",
    "take a task",
    "finish a task",
    "fail a task",
    "set a budget",
    "set a price",
    "set a share",
    "set an end",
    "draft a policy",
    "take a policy over",
    "discard a policy",
    "activate a policy",
    "schedule a policy",
    "cancel a policy",
    "change a cluster",
    "maintain a cluster",
    "try again",
    "confirm ends",
    "dismiss ends",
    "release a brake",
    "change by hand",
    "delete by hand",
    "change everywhere",
    "repair",
    "adopt",
    "ignore",
    "take up",
    "give up",
    "push by hand",
    "push by force",
    "add nodes",
    "wish to leave",
    "unprotect",
    "protect",
    "confirm a departure",
    "withdraw a departure",
    "restore",
    "agree to a departure",
    "write off a cluster",
    "deliver",
    "sweep",
    "two workers",
    "one worker",
    "wrong clock",
    "look at a cluster",
    "look through a cluster",
    "look at work",
    "let time go by",
}
STRUCK = {
    "no fault",
    "killed at a point",
    "killed anywhere",
    "cut off at a point",
    "cut off anywhere",
    "bad network: delay",
    "bad network: reset",
    "bad network: blackhole",
    "bad network: drip",
    "bad network: status",
    "bad server",
    "broker flushed",
    "bad repository: locked",
    "bad repository: away",
}


def iteration(place: Place, seed: str) -> tuple[Walk, list[str]]:
    """One walk from an empty world, and what is wrong after it."""
    random = Random(seed)
    walk = Walk(Town(random, place), random, OPERATIONS, GOES_WRONG)
    walk.go(random.randint(6, 18))
    return walk, wrong(walk.town)
