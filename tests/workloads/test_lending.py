"""What a team can ever borrow: the preview, the form and the answer beside it say what Kueue then does."""

from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from accounts.models import User
from allocations.sync import keep_in_step
from fleet.models import Cluster, Flavor
from policy.document import Thresholds
from provisioning import reconcile
from provisioning.clusters.installation import mark
from provisioning.desired.first_job import Kind
from provisioning.desired.queues import cluster_queue
from provisioning.models import Tenancy
from sandbox.kubernetes.capacity import Pool as Capacity
from tests import factories
from tests.services.process import wait_until
from tests.workloads.conftest import Watched, is_read, watching
from tests.workloads.test_runs import ASKED
from workloads.models import ClusterObject
from workloads.reading.queues import sizes_lent_by
from workloads.runs import actions, sending
from workloads.runs.pages.form import pool_words
from workloads.runs.planning.lending import Lender, lent_to
from workloads.runs.planning.places import place_of, places_of
from workloads.runs.planning.plan import Plan, Problem
from workloads.runs.planning.pools import Pool
from workloads.runs.planning.queue_copies import queue_demand
from workloads.runs.planning.queue_demand import QueueDemand
from workloads.runs.planning.start_verdict import start_verdict, start_verdict_of_plan
from workloads.runs.planning.words import paid_words

A100, GPU = "a100", "nvidia.com/gpu"
WORKLOAD = ("kueue.x-k8s.io/v1beta2", "Workload")
BILLION = 10**9


@pytest.fixture
def cluster(db: None) -> Cluster:
    """One with A100, on which each team may borrow up to as much again as it holds."""
    generous = Thresholds(
        automatic_gpus=8,
        automatic_usd=Decimal(9999),
        window_gpus_team=8,
        window_gpus_person=8,
    )
    factories.policy(generous, now=timezone.now() - timedelta(hours=1))
    made = factories.cluster(borrow_percent=100)
    factories.flavor(made, A100)
    return made


@pytest.fixture
def ada(cluster: Cluster) -> User:
    """Who looks at it."""
    return factories.person("Ada Okafor")


def holding(cluster: Cluster, gpus: int, by: User | None = None) -> Tenancy:
    """A team that holds so many A100 on the cluster."""
    by = by or factories.person()
    team = factories.team(by=by)
    factories.join(team, by)
    tenancy = factories.tenancy(team, cluster)
    if gpus:
        factories.allocation(
            by, tenancy, Flavor.objects.get(cluster=cluster, name=A100), gpus=gpus
        )
    return Tenancy.objects.select_related("team", "project", "cluster__ability").get(
        pk=tenancy.pk
    )


def borrow(tenancy: Tenancy) -> int:
    """How many A100 a run there may borrow."""
    return place_of(tenancy, by=tenancy.team.created_by).pools[A100].borrow


def queue_on(cluster: Cluster, name: str, cohort: str, **quota: str) -> None:
    """A queue that somebody else keeps on the cluster, as it was last seen."""
    resources = [{"name": GPU, **quota}]
    group = {
        "coveredResources": [GPU],
        "flavors": [{"name": A100, "resources": resources}],
    }
    body: dict[str, Any] = {
        "kind": "ClusterQueue",
        "metadata": {"name": name},
        "spec": {"cohortName": cohort, "resourceGroups": [group]},
    }
    ClusterObject.objects.create(
        cluster=cluster, kind="ClusterQueue", name=name, body=body
    )


def test_the_other_queues_of_the_cohort_lend() -> None:
    lenders = [
        Lender(name="own", cohort="c", lends={(A100, GPU): 8}),
        Lender(name="one", cohort="c", lends={(A100, GPU): 2, ("h100", GPU): 1}),
        Lender(name="two", cohort="c", lends={(A100, GPU): 3}),
        Lender(name="else", cohort="d", lends={(A100, GPU): 5}),
    ]
    assert lent_to("own", "c", lenders) == {(A100, GPU): 5, ("h100", GPU): 1}


@pytest.mark.slow
@pytest.mark.parametrize("others", [(), (0,), (1,), (1, 1), (8,), (3, 2, 1)])
def test_it_is_what_kueue_counts_as_its_maximum_capacity(
    cluster: Cluster, ada: User, others: tuple[int, ...]
) -> None:
    own = holding(cluster, 2, ada)
    rows = [own, *(holding(cluster, gpus) for gpus in others)]
    most = Capacity([cluster_queue(one.desired) for one in rows], [], []).most(
        own.namespace, (A100, GPU)
    )
    assert 2 + borrow(own) == most // BILLION


def test_who_leaves_lends_until_it_has_left_and_other_clusters_never_do(
    cluster: Cluster, ada: User
) -> None:
    own, leaver = holding(cluster, 2, ada), holding(cluster, 1)
    elsewhere = factories.cluster(borrow_percent=100)
    factories.flavor(elsewhere, A100)
    holding(elsewhere, 8)
    now = timezone.now()
    factories.leave(leaver, to="leaving", at=now)
    assert borrow(own) == 1
    factories.leave(leaver, to="retained", at=now, kept=timedelta(days=1))
    assert borrow(own) == 0


def test_a_queue_of_somebody_else_in_the_cohort_lends_what_it_does_not_keep(
    cluster: Cluster, ada: User
) -> None:
    own = holding(cluster, 4, ada)
    queue_on(cluster, "theirs", cluster.cohort, nominalQuota="8", lendingLimit="3")
    queue_on(cluster, "not-in-it", "another", nominalQuota="8")
    # The portal's own, as they were seen before it wanted something else.
    queue_on(cluster, own.namespace, cluster.cohort, nominalQuota="4")
    assert borrow(own) == 3
    queue_on(cluster, "generous", cluster.cohort, nominalQuota="8")
    assert borrow(own) == 4


def test_places_take_no_more_queries_the_more_they_are(
    cluster: Cluster, ada: User
) -> None:
    rows = [holding(cluster, gpus) for gpus in (2, 3, 1)]
    # A process reads once whose portal it is.
    assert mark()
    with CaptureQueriesContext(
        connection,
    ) as few:
        places_of(rows[:1], by=ada)
    with CaptureQueriesContext(connection) as many:
        found = places_of(rows, by=ada)
    assert [one.pools[A100].borrow for one in found] == [2, 3, 1]
    assert len(many) == len(few) == 4


def test_the_preview_says_what_kueue_does(watched: Watched) -> None:
    Cluster.objects.filter(pk=watched.cluster.pk).update(borrow_percent=100)
    deliver()

    [problem] = preview(watched, 3).problems
    assert problem.text == "It takes 3 × A100. Your team holds 2: ask for 1 more."
    assert (problem.code, problem.lacks) == ("more_than_held", 1)
    watched.job("three", gpus=3)
    wait_until(
        lambda: "(3) > maximum capacity (2)" in said(watched),
        what="Kueue to say that it never fits",
    )

    holding(watched.cluster, 1)
    deliver()
    possible = preview(watched, 3)
    assert (possible.problems, possible.borrows) == ([], 1)
    [problem] = preview(watched, 4).problems
    assert (
        problem.text
        == "It takes 4 × A100. Your team holds 2 and may borrow 1: ask for 1 more."
    )
    assert problem.lacks == 1
    wait_until(
        lambda: said(watched).startswith("Quota reserved"), what="Kueue to let it in"
    )


@pytest.mark.slow
@pytest.mark.parametrize("others", [(), (1,), (8,)])
@pytest.mark.parametrize("resource", ["cpu", "memory"])
def test_the_cpus_and_the_memory_of_a_queue_are_what_kueue_counts(
    cluster: Cluster, ada: User, others: tuple[int, ...], resource: str
) -> None:
    """Its own and what others can lend, of the flavor alone and not of the whole namespace."""
    own = holding(cluster, 2, ada)
    rows = [own, *(holding(cluster, gpus) for gpus in others)]
    most = Capacity([cluster_queue(one.desired) for one in rows], [], []).most(
        own.namespace, (A100, resource)
    )
    room = place_of(own, by=ada).rooms[A100]
    unit = BILLION * (2**30 if resource == "memory" else 1)
    assert room.most[resource] == most // unit


def test_a_queue_of_somebody_else_lends_its_cpus_and_memory(
    cluster: Cluster, ada: User
) -> None:
    """In whatever notation they stand there."""
    queue = {
        "spec": {
            "resourceGroups": [
                {
                    "flavors": [
                        {
                            "name": A100,
                            "resources": [
                                {"name": "cpu", "nominalQuota": "6500m"},
                                {
                                    "name": "memory",
                                    "nominalQuota": "1Ti",
                                    "lendingLimit": "10Gi",
                                },
                                {"name": GPU, "nominalQuota": "8"},
                            ],
                        }
                    ]
                }
            ]
        }
    }
    assert sizes_lent_by(queue) == {(A100, "cpu"): 6, (A100, "memory"): 10}


@pytest.mark.parametrize(
    ("field", "wanted", "said"),
    [
        pytest.param(
            "cpus",
            18,
            "It asks for 18 CPUs; your queue can never give it more than 16 CPUs.",
            id="CPUs",
        ),
        pytest.param(
            "memory",
            130,
            "It asks for 130 GiB of memory; your queue can never give it more than 128 GiB of memory.",
            id="memory",
        ),
    ],
)
def test_more_cpus_or_memory_than_the_queue_ever_gives_are_refused_at_the_field(
    watched: Watched, field: str, wanted: int, said: str
) -> None:
    """The namespace's own quota is larger, and Kueue does not look at it."""
    asked = replace(ASKED, values={**ASKED.values, "gpus": 1, field: wanted})
    found = actions.preview(watched.tenancy.pk, asked, by=watched.ada, key="one")
    [problem] = found.problems
    assert (problem.field, problem.code) == (field, "more_than_the_queue")
    assert problem.text == said
    less = replace(asked, values={**asked.values, field: wanted - 2})
    assert not actions.preview(
        watched.tenancy.pk, less, by=watched.ada, key="one"
    ).problems


def test_cpus_that_others_lend_make_a_run_possible(watched: Watched) -> None:
    """As GPUs do: what is lent is looked at once the queue's own are too few."""
    Cluster.objects.filter(pk=watched.cluster.pk).update(borrow_percent=100)
    holding(watched.cluster, 1)
    deliver()
    asked = replace(ASKED, values={**ASKED.values, "gpus": 1, "cpus": 24})
    found = actions.preview(watched.tenancy.pk, asked, by=watched.ada, key="one")
    assert not found.problems
    start = start_verdict_of_plan(found, watched.tenancy, A100, timezone.now())
    assert "8 CPUs would be borrowed" in start["detail"]


@pytest.mark.slow
def test_a_run_that_waits_for_cpus_is_not_said_to_start_at_once(
    watched: Watched,
) -> None:
    """Its GPUs are free, and the CPUs that go with them are not."""
    first = replace(ASKED, values={**ASKED.values, "gpus": 1, "cpus": 12})
    run = actions.submit(
        watched.tenancy.pk, first, by=watched.ada, key="one", now=timezone.now()
    )
    with watching(watched.kubernetes):
        wait_until(is_read, what="everything to be listed")
        sending.look_after(run.pk, now=timezone.now)
        wait_until(
            lambda: (
                queue_demand(watched.tenancy, A100, 1).sizes.get((A100, "cpu")) == 12
            ),
            what="its CPUs to be seen",
        )
        found = actions.preview(watched.tenancy.pk, first, by=watched.ada, key="two")
        start = start_verdict_of_plan(found, watched.tenancy, A100, timezone.now())
        without = replace(
            first, flavor="", values={**first.values, "gpus": 0, "cpus": 10}
        )
        found = actions.preview(watched.tenancy.pk, without, by=watched.ada, key="two")
        gpuless = start_verdict_of_plan(found, watched.tenancy, "", timezone.now())
    assert (start["tone"], start["sentence"]) == ("waiting", "It waits in line first")
    assert "It waits for 8 CPUs more." in start["detail"]
    assert "1 of your 2 × A100 is free now" in start["detail"]
    room = max(one.own["cpu"] for one in found.rooms if one.flavor != A100)
    assert gpuless["tone"] == ("good" if room >= 10 else "waiting")


def deliver() -> None:
    """What is wanted of each team reaches the cluster."""
    keep_in_step(now=timezone.now)
    for pk in Tenancy.objects.values_list("pk", flat=True):
        reconcile.reconcile(pk, now=timezone.now)


def preview(watched: Watched, gpus: int) -> Plan:
    """The plan of a run of so many GPUs."""
    asked = replace(ASKED, values={**ASKED.values, "gpus": gpus})
    return actions.preview(watched.tenancy.pk, asked, by=watched.ada, key="one")


def said(watched: Watched) -> str:
    """What Kueue says of the quota of the only job there."""
    for name in watched.kubernetes.names(WORKLOAD):
        found = watched.kubernetes.get(WORKLOAD, name, watched.namespace) or {}
        for one in found.get("status", {}).get("conditions", []):
            if one["type"] == "QuotaReserved":
                return str(one["message"])
    return ""


def pool(borrow: int) -> Pool:
    """2 A100 held, and so many to borrow."""
    kind = Kind(A100, GPU, {}, [])
    return Pool(
        kind=kind,
        product="A100",
        gpus=2,
        borrow=borrow,
        per_node=8,
        usd_per_hour=Decimal(1),
    )


def test_the_form_offers_to_borrow_what_there_is() -> None:
    assert pool_words(pool(1)) == "A100: 2 held, 1 more to borrow"
    assert pool_words(pool(0)) == "A100: 2 held"


def test_the_form_tells_up_to_which_cuda_a_kind_goes() -> None:
    known = replace(pool(1), cuda="12.8")
    assert pool_words(known) == "A100: 2 held, 1 more to borrow, CUDA up to 12.8"


@pytest.mark.parametrize(
    ("wanted", "used", "waiting", "to_borrow", "sentence", "borrowed"),
    [
        (2, 0, 0, 0, "It can start at once", 0),
        (2, 1, 0, 0, "It waits in line first", 0),
        (2, 1, 0, 1, "It starts if GPUs can be borrowed", 1),
        (3, 0, 0, 1, "It starts if GPUs can be borrowed", 1),
        # Its own GPUs are taken: the one to borrow is not enough.
        (3, 2, 0, 1, "It waits in line first", 1),
        # What runs has borrowed all that there is.
        (1, 4, 0, 2, "It waits in line first", 0),
        (1, 3, 0, 2, "It starts if GPUs can be borrowed", 1),
        (3, 0, 1, 1, "It waits in line first", 1),
        # What waits takes more than is free.
        (1, 1, 1, 0, "It may start before what waits", 0),
    ],
)
def test_the_answer_promises_to_borrow_only_what_is_there(
    wanted: int, used: int, waiting: int, to_borrow: int, sentence: str, borrowed: int
) -> None:
    found = start_verdict(
        wanted,
        pool(to_borrow),
        QueueDemand(used=used, waiting=waiting, estimate=None),
        priority=0,
    )
    assert found["sentence"] == sentence
    assert ("would be borrowed" in found["detail"]) == bool(borrowed)
    assert not borrowed or f"{borrowed} × A100 would be borrowed" in found["detail"]


@pytest.mark.parametrize(
    ("wanted", "below", "to_borrow", "sentence"),
    [
        (2, 1, 0, "It pushes out work of a lower priority"),
        (2, 0, 0, "It waits in line first"),
        # Kueue borrows before it preempts, and preempts for nobody beyond the guarantee.
        (2, 1, 1, "It starts if GPUs can be borrowed"),
        (3, 1, 0, "It waits in line first"),
    ],
)
def test_the_answer_says_whom_it_would_push_out(
    wanted: int, below: int, to_borrow: int, sentence: str
) -> None:
    demand = QueueDemand(used=1, waiting=0, estimate=None, below=below)
    found = start_verdict(wanted, pool(to_borrow), demand, priority=0)
    assert found["sentence"] == sentence
    assert ("lower priority hold 1" in found["detail"]) == sentence.startswith(
        "It pushes"
    )


@pytest.mark.parametrize(
    ("lost", "said"),
    [
        (0, ""),
        (1, "One of them, a notebook or a bare pod, does not come back"),
        (2, "2 of them, notebooks or bare pods, do not come back"),
    ],
)
def test_the_answer_says_what_would_be_lost_for_good(lost: int, said: str) -> None:
    demand = QueueDemand(used=1, waiting=0, estimate=None, below=1, lost=lost)
    found = start_verdict(2, pool(0), demand, priority=0)
    assert said in found["detail"]
    assert ("what" in found["detail"] and "memory is lost" in found["detail"]) == bool(
        lost
    )


@pytest.mark.parametrize(
    ("priorities", "said"),
    [
        pytest.param((100_000,), "It has a higher priority and takes", id="one waits"),
        pytest.param((0, 100_000), "One of them has a higher", id="one of two"),
        pytest.param((100_000, 100_000), "2 of them have a higher", id="two"),
    ],
)
def test_the_answer_says_what_waits_and_would_stop_it(
    priorities: tuple[int, ...], said: str
) -> None:
    demand = QueueDemand(
        used=1, waiting=len(priorities), estimate=None, priorities=priorities
    )
    found = start_verdict(1, pool(0), demand, priority=1_000)
    assert found["sentence"] == "It may start, and be stopped for what waits"
    assert said in found["detail"]
    assert "the run goes back to the line then" in found["detail"]
    highest = start_verdict(1, pool(0), demand, priority=100_000)
    assert highest["sentence"] == "It may start before what waits"


@pytest.mark.parametrize(("to_borrow", "is_said"), [(0, False), (2, True)])
def test_who_pays_for_what_is_borrowed_is_said_where_there_is_some(
    to_borrow: int, is_said: bool
) -> None:
    plan = Plan(name="it", manifests=(), problems=(), gpus=2, pool=pool(to_borrow))
    said = paid_words(plan)
    assert "stopping it saves nothing, giving GPUs back does." in said
    assert ("What it borrows, the team that holds it pays for." in said) == is_said
    assert not paid_words(replace(plan, gpus=0))
    problem = Problem(field="gpus", text="Too many.")
    assert not paid_words(replace(plan, problems=[problem]))
