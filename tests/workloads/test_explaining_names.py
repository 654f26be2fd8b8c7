"""Whatever the facts: one class, a since, every sentence, at most one step, and no name that the reader may not see."""

from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.workloads.known import NOW, OWN, recorded, workload
from workloads.estimating import Wait, history_of
from workloads.explaining import explain, later
from workloads.explanations import Action, Explanation, Outlook
from workloads.observed import (
    Ahead,
    Cluster,
    Condition,
    Event,
    Facts,
    Job,
    JobKey,
    Line,
    Node,
    Nodes,
    OpenRequest,
    Pod,
    Queue,
    QuotaHolder,
    Stop,
    TeamQueue,
    Viewer,
    Waiting,
    Workload,
)

# Names of another team, which must not be read anywhere.
SECRET = "zebra"
OTHERS = JobKey(f"team-{SECRET}", f"{SECRET}-run", uid=f"{SECRET}-uid")
STATES = [state for _, state in recorded()]
UID = "00000000-0000-4000-9000-0000000000aa"
TIMES = st.none() | st.timedeltas(
    min_value=timedelta(days=-9), max_value=timedelta(hours=1)
).map(NOW.__add__)
PRIVATE = (
    f"Preempted to accommodate a workload (UID: {SECRET}, JobUID: {UID}) due to x; preemptor path: /c/{SECRET}; "
    f"preemptee path: /c/{SECRET}"
)
TEXTS = st.just(PRIVATE) | st.sampled_from(
    sorted({each.message for state in STATES for each in state.conditions.values()})
)
CONDITIONS = st.builds(
    Condition,
    st.sampled_from(
        [
            "QuotaReserved",
            "Admitted",
            "Evicted",
            "Requeued",
            "PodsReady",
            "Preempted",
            "Finished",
        ]
    ),
    st.booleans(),
    st.sampled_from(
        [
            "Pending",
            "WaitingForQuota",
            "Preempted",
            "Deactivated",
            "PodsReadyTimeout",
            "Inadmissible",
            "",
        ]
    ),
    TEXTS,
    TIMES,
)


@st.composite
def workloads(draw: st.DrawFn) -> Workload:
    """A recorded state, with conditions drawn anew."""
    state = draw(st.sampled_from(STATES))
    said = {one.kind: one for one in draw(st.lists(CONDITIONS, min_size=1, max_size=3))}
    return replace(
        state,
        is_active=draw(st.booleans()),
        conditions={**state.conditions, **said},
        requeue_at=draw(TIMES),
        key=OWN,
    )


# Mostly one that answers: the others hide everything else.
CLUSTERS = [*[Cluster()] * 8, Cluster(silent_since=NOW), Cluster(queues_down_since=NOW)]
# What names another job: the line of a strict queue, and whom it made room for.
VICTIM = {
    "QuotaReserved": Condition("QuotaReserved", True, "QuotaReserved", "", NOW),
    "Evicted": Condition("Evicted", True, "Preempted", PRIVATE, NOW),
}
NAMING = st.sampled_from([workload({}), workload(VICTIM)])
WAITING = st.builds(
    Waiting,
    st.just("main"),
    st.just("x:1"),
    st.sampled_from(["ImagePullBackOff", "CrashLoopBackOff", "New"]),
    TEXTS,
)
PODS = st.builds(
    Pod,
    name=st.just("bert-0"),
    phase=st.sampled_from(["Pending", "Running", "Failed"]),
    created=TIMES,
    node=st.sampled_from(["", "n"]),
    unscheduled=st.none() | CONDITIONS,
    waiting=st.lists(WAITING, max_size=1).map(tuple),
)
ACTIVE = st.builds(
    Condition,
    st.just("Active"),
    st.booleans(),
    st.sampled_from(["Ready", "Stopped"]),
    TEXTS,
    TIMES,
)
REQUESTS = st.dictionaries(
    st.just("a100"),
    st.builds(
        OpenRequest,
        st.just(17),
        st.just(4),
        st.just("Grace"),
        TIMES.map(lambda at: at or NOW),
        st.just(4),
    ),
)
FACTS = st.builds(
    Facts,
    job=st.none()
    | st.builds(
        Job, key=st.just(OWN), created=TIMES, is_suspended=st.none() | st.booleans()
    ),
    workload=workloads() | NAMING | st.none(),
    queue=st.none()
    | st.builds(
        Queue,
        name=st.just("q"),
        active=st.none() | ACTIVE,
        strategy=st.sampled_from(["StrictFIFO", "BestEffortFIFO"]),
    ),
    team_queue=st.none()
    | st.builds(
        TeamQueue,
        name=st.just("default"),
        cluster_queue=st.just("q"),
        active=st.none() | ACTIVE,
    ),
    line=st.none()
    | st.builds(
        Line,
        st.integers(0, 9),
        st.none() | st.integers(1, 9),
        st.lists(
            st.builds(Ahead, st.just(OTHERS), fits=st.sampled_from([None, False])),
            max_size=2,
        ).map(tuple),
    ),
    running=st.lists(
        st.builds(QuotaHolder, st.just(OTHERS), st.just("a100"), st.integers(1, 8)),
        max_size=2,
    ).map(tuple),
    pods=st.lists(PODS, max_size=2).map(tuple),
    events=st.lists(
        st.builds(
            Event,
            kind=st.just("Job"),
            name=st.just("bert"),
            reason=st.just("FailedCreate"),
            message=TEXTS,
            at=TIMES,
        ),
        max_size=1,
    ).map(tuple),
    nodes=st.lists(
        st.builds(Node, name=st.just("n"), gpus=st.sampled_from([1, 8])), max_size=2
    ).map(Nodes),
    requests=REQUESTS,
    stop=st.none() | st.builds(Stop, st.just(NOW), st.just("a100")),
    jobs=st.just({UID: OTHERS}),
    cluster=st.sampled_from(CLUSTERS),
    viewer=st.just(Viewer(frozenset({OWN.namespace}))),
    history=st.none()
    | st.just(history_of([Wait(8, timedelta(minutes=9))] * 9, source="30 days")),
)


@pytest.mark.slow
@settings(max_examples=500)
@given(FACTS)
def test_every_explanation_is_whole_and_tells_no_name_that_the_reader_may_not_see(
    facts: Facts,
) -> None:
    found = explain(facts, now=NOW)
    assert_whole(found)
    assert SECRET not in repr(found)
    assert UID not in repr(found)


@pytest.mark.slow
@given(FACTS)
def test_a_reader_who_sees_all_gets_the_same_answer(facts: Facts) -> None:
    """Rights change names only, never the reason: but a job that blocks the line is stopped by who may see it."""
    mine = explain(facts, now=NOW)
    everything = explain(replace(facts, viewer=Viewer(sees_all=True)), now=NOW)
    assert_whole(everything)
    assert mine.code.removesuffix("_other") == everything.code.removesuffix("_own")


def assert_whole(found: Explanation) -> None:
    assert found.outlook in Outlook
    assert found.since.tzinfo is not None
    assert all((found.code, found.what, found.line, found.when, found.do))
    assert found.what.endswith(".")
    assert found.do.endswith(".")
    assert found.step is None or (found.step.label and found.step.action in Action)
    assert found.estimate is None or (
        found.estimate.samples >= 5 and found.outlook == Outlook.WAIT
    )


@pytest.mark.slow
@settings(max_examples=500)
@given(FACTS, st.sampled_from([1, 29, 31, 121, 3_600, 86_400, 86_400 * 60]))
def test_an_explanation_holds_as_long_as_it_says_and_only_its_estimate_moves_on(
    facts: Facts, seconds: int
) -> None:
    at = NOW + timedelta(seconds=seconds)
    first, then = explain(facts, now=NOW), explain(facts, now=at)
    if first.until is not None and first.until <= at:
        return
    gpus = facts.workload.gpus if facts.workload else 0
    kept = later(first, facts.history, gpus, now=at)
    # What has no beginning is told from the moment at which somebody looks.
    if (first.since, then.since) == (NOW, at):
        then = replace(then, since=NOW, when=kept.when, estimate=kept.estimate)
    assert replace(kept, until=None) == replace(then, until=None)
