"""Where a request of the team for more GPUs waits, an explanation names that and invites nobody to ask again."""

from datetime import timedelta
from typing import Any

import pytest

from tests.workloads import test_explaining_volcano as volcano
from tests.workloads.known import BEFORE, NOW, condition, waiting, why, workload
from tests.workloads.test_explaining_messages import FULL, LARGE
from workloads.explanations import Action
from workloads.observed import (
    Allocation,
    OpenRequest,
    Queue,
    Quota,
    Stop,
    Workload,
)

ASKED = OpenRequest(17, 4, "Grace Hopper", BEFORE, 4)
INVITES = ("ask for", "Ask for", "Renew")
LENT = Queue(name="team-nlp", quotas=(Quota("a100", "nvidia.com/gpu", 8, 8, 8, 0),))
HALF = Queue(name="team-nlp", quotas=(Quota("a100", "nvidia.com/gpu", 4, 4, 0, 0),))
ENDED = Allocation(flavor="a100", gpus=8, ends=NOW - timedelta(hours=1))
DEACTIVATED = condition("Evicted", is_true=True, reason="Deactivated")


@pytest.mark.parametrize(
    ("job", "facts", "code"),
    [
        pytest.param(
            waiting(FULL), {"queue": LENT}, "quota_full", id="others lend too little"
        ),
        pytest.param(waiting(LARGE), {}, "request_open", id="its queue has too few"),
        pytest.param(
            waiting(LARGE),
            {"allocations": (ENDED,)},
            "request_open",
            id="its GPUs have ended",
        ),
        pytest.param(
            workload({"Evicted": DEACTIVATED}, is_active=False),
            {"stop": Stop(BEFORE, "a100", 8), "queue": HALF},
            "stopped_by_portal",
            id="the portal stopped it",
        ),
        pytest.param(
            volcano.group("Pending"),
            {
                "queue": volcano.queue(nominal=4, reserved=0),
                "events": (volcano.event(volcano.FULL),),
            },
            "request_open",
            id="its queue of Volcano has too few",
        ),
    ],
)
def test_the_request_is_named_in_place_of_the_advice_to_ask(
    job: Workload, facts: dict[str, Any], code: str
) -> None:
    without = why(job, **facts, requests={"h100": ASKED})
    assert any(one in f"{without.what} {without.do}" for one in INVITES)

    found = why(job, **facts, requests={"a100": ASKED})

    said = f"{found.what} {found.do}"
    assert "Your team's request for 4 more waits for Grace Hopper." in said
    assert [one for one in INVITES if one in said] == []
    assert found.code == code
    assert found.step is not None
    assert (found.step.action, found.step.data) == (
        Action.OPEN_REQUEST,
        {"request": 17},
    )


@pytest.mark.parametrize(
    ("job", "facts"),
    [
        pytest.param(
            waiting(LARGE), {"allocations": (ENDED,)}, id="its GPUs have ended"
        ),
        pytest.param(
            workload({"Evicted": DEACTIVATED}, is_active=False),
            {"stop": Stop(BEFORE, "a100", 8), "queue": HALF},
            id="the portal stopped it",
        ),
    ],
)
@pytest.mark.parametrize(("in_all", "is_enough"), [(1, False), (4, True)])
def test_how_many_it_lacks_beyond_all_that_waits_is_said_of_what_it_had_too(
    job: Workload, facts: dict[str, Any], in_all: int, is_enough: bool
) -> None:
    """It asks for 8, and 4 can be had: a request for 1 more is not all that it waits for."""
    asked = OpenRequest(17, 1, "Grace Hopper", BEFORE, in_all)
    found = why(job, **facts, requests={"a100": asked})
    assert ("sk for 3 more than that" in found.do) is not is_enough
