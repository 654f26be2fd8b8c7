"""A cluster's queues, told from the copy: one's own teams by name, the others in sums."""

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from accounts.models import User
from accounts.roles import Role
from fleet.models import Cluster
from provisioning import reconcile
from provisioning.models import Tenancy
from tests import factories
from tests.calling import Caller
from tests.services.process import wait_until
from tests.workloads.conftest import Watched, is_read, watching
from workloads.models import ClusterObject, Feed
from workloads.observed import JobKey
from workloads.queue_board import ClusterQueues, queues_of_cluster
from workloads.queue_page import holds, stops_of, waits
from workloads.queueing import Holder, QueueLine, Share, Waiter


@dataclass
class Shared:
    """Vision and Speech have 2 GPUs each, and Vision borrows one of Speech's while a job of it waits."""

    watched: Watched
    bob: User
    speech: Tenancy

    def queues(self, by: User) -> ClusterQueues:
        """What the cluster's queues are to somebody now."""
        return queues_of_cluster(self.watched.cluster, by=by, now=timezone.now())

    def page(self, by: User) -> str:
        """The page as somebody sees it."""
        browser = Client()
        browser.force_login(by)
        answer = browser.get("/clusters/training/queue")
        assert answer.status_code == 200
        return answer.content.decode()


@pytest.fixture
def shared(watched: Watched) -> Shared:
    bob = factories.person("Bob Ray")
    team = factories.team("Speech", by=bob)
    factories.join(team, bob)
    speech = factories.tenancy(team, watched.cluster)
    factories.allocation(bob, speech, watched.cluster.flavors.get(), gpus=2)
    reconcile.reconcile(speech.pk, now=timezone.now)
    scene = Shared(watched, bob, speech)
    lend(scene)

    stranger = factories.person("Nobody Here")

    def is_so(running: int, waiting: int) -> bool:
        others = scene.queues(stranger).others
        return (others.running, others.waiting) == (running, waiting)

    watched.job("own-two", gpus=2)
    with watching(watched.kubernetes):
        wait_until(is_read, what="everything to be listed")
        wait_until(lambda: is_so(1, 0), what="the first job to run")
        # Kubernetes tells times in whole seconds, and what runs for less time is what is stopped.
        began = timezone.now().replace(microsecond=0)
        wait_until(
            lambda: timezone.now() - began > timedelta(seconds=1),
            what="the next second",
        )
        watched.job("borrows-one", gpus=1)
        watched.job("speech-secret", gpus=1, namespace=speech.namespace)
        wait_until(lambda: is_so(3, 0), what="three jobs to run")
        watched.job("waits", gpus=1)
        wait_until(lambda: is_so(3, 1), what="the last job to wait")
        wait_until(lambda: is_placed(scene), what="the first job's pod to be on a node")
    return scene


def is_placed(scene: Shared) -> bool:
    """Whether Vision's first job has its GPUs; the namespace's own quota lets the other have no pod."""
    [mine] = scene.queues(scene.watched.ada).teams
    return any(one.is_placed for one in mine.line.running)


def lend(scene: Shared) -> None:
    """Both queues may borrow up to 2 GPUs, as a platform lead would have it."""
    for name in (scene.watched.namespace, scene.speech.namespace):
        ref = ("kueue.x-k8s.io/v1beta2", "ClusterQueue")
        queue = scene.watched.kubernetes.get(ref, name)
        assert queue is not None
        groups = queue["spec"]["resourceGroups"]
        for flavor in groups[0]["flavors"]:
            for one in flavor["resources"]:
                one["borrowingLimit"] = one["nominalQuota"]
        body = {"spec": {"resourceGroups": groups}}
        scene.watched.kubernetes.patch(ref, name, None, body)


@pytest.mark.slow
def test_a_team_sees_its_own_jobs_by_name_and_the_others_as_sums(
    shared: Shared,
) -> None:
    ada, stranger = shared.watched.ada, factories.person("Cy Other")
    found = shared.queues(ada)
    [mine] = found.teams
    assert {one.key.name: one.may_be_stopped for one in mine.line.running} == {
        "own-two": False,
        "borrows-one": True,
    }
    assert [(one.position, one.key.name) for one in mine.line.waiting] == [(1, "waits")]
    assert (mine.line.guaranteed, mine.line.held, mine.line.borrowed) == (2, 3, 1)
    assert mine.line.oldest is not None
    assert (found.others.running, found.others.held, found.others.waiting) == (1, 1, 0)
    [room] = found.rooms
    assert room.flavor == "a100"
    assert room.free >= room.largest
    shown = shared.page(ada)
    for text in (
        "own-two",
        "Waits, number 1",
        "1 borrowed",
        "Other teams: 1 GPU in use, no job waits.",
    ):
        assert text in shown
    # Whether its pods run by now is another matter, and the priority is called as on the form.
    assert "Has its GPUs" in shown
    assert "Let in, on no node yet, may be stopped" in shown
    assert "Best effort" in shown
    assert "speech-secret" not in shown
    assert "speech-secret" in shared.page(shared.bob)
    nothing = shared.page(stranger)
    assert "No queue of yours" in nothing
    assert "Other teams: 4 GPUs in use (1 borrowed), 1 job waits for 1 GPU" in nothing
    factories.flavor(
        shared.watched.cluster, "a100-1g", resource="nvidia.com/mig-1g.10gb"
    )
    both = "Other teams: 4 GPUs and slices in use (1 borrowed), 1 job waits for 1 GPU or slice"
    assert both in shared.page(stranger)
    assert not [
        name
        for name in ("own-two", "waits</bdi>", "speech", "Vision")
        if name in nothing
    ]


@pytest.mark.slow
def test_the_api_says_the_same_and_auditors_see_all(shared: Shared) -> None:
    told = Caller(shared.watched.ada).get("queues/training/").json()
    [mine] = told["teams"]
    assert mine["team"]["slug"] == shared.watched.team.slug
    assert mine["shares"] == [
        {"flavor": "a100", "guaranteed": 2, "held": 3, "borrowed": 1}
    ]
    assert [(one["position"], one["name"]) for one in mine["waiting"]] == [(1, "waits")]
    assert told["seen"]["silent_since"] is None
    assert "speech-secret" not in str(told)
    auditor = factories.person("", Role.AUDITOR)
    all_of_it = Caller(auditor).get("queues/training/").json()
    assert {one["team"]["slug"] for one in all_of_it["teams"]} == {"vision", "speech"}
    assert all_of_it["others"]["queues"] == 0
    assert Caller(auditor).get("queues/nowhere/").status_code == 404


@pytest.mark.slow
def test_it_takes_as_many_queries_however_many_jobs_there_are(
    shared: Shared, django_assert_max_num_queries: object
) -> None:
    ada = User.objects.get(pk=shared.watched.ada.pk)
    rows = list(ClusterObject.objects.filter(kind="Workload"))
    ClusterObject.objects.bulk_create(
        ClusterObject(
            cluster=row.cluster,
            kind=row.kind,
            namespace=row.namespace,
            name=f"{n}-{row.name}",
            body=row.body,
        )
        for row in rows
        for n in range(50)
    )
    with django_assert_max_num_queries(6):  # type: ignore[operator]
        assert shared.queues(ada).others.running > 50


@pytest.mark.slow
def test_a_silent_cluster_says_since_when_and_one_that_was_not_read_says_so(
    shared: Shared,
) -> None:
    since = timezone.now() - timedelta(minutes=5)
    Feed.objects.filter(kind="Pod").update(silent_since=since, message="503: away")
    assert "has said nothing since" in shared.page(shared.watched.ada)
    Feed.objects.update(listed_at=None, silent_since=None)
    assert "has not read this cluster yet" in shared.page(shared.watched.ada)


@pytest.mark.slow
def test_what_fits_is_not_told_while_nothing_starts(shared: Shared) -> None:
    ada, now = shared.watched.ada, timezone.now()
    assert "pod that fits now" in shared.page(ada)
    Cluster.objects.filter(pk=shared.watched.cluster.pk).update(
        maintenance_starts_at=now - timedelta(minutes=1),
        maintenance_ends_at=now + timedelta(hours=1),
    )
    during = shared.page(ada)
    assert "pod that fits now" not in during
    assert "nothing new starts" in during


@pytest.mark.slow
def test_what_was_let_in_and_is_on_no_node_yet_does_not_have_its_gpus(
    shared: Shared,
) -> None:
    for row in ClusterObject.objects.filter(kind="Pod"):
        row.body["spec"].pop("nodeName", None)
        row.save(update_fields=["body"])
    shown = shared.page(shared.watched.ada)
    assert "Let in, on no node yet" in shown
    assert "Let in, on no node yet, may be stopped" in shown
    assert "Has its GPUs" not in shown
    [mine] = Caller(shared.watched.ada).get("queues/training/").json()["teams"]
    assert {
        one["name"]: (one["pods"], one["pods_on_nodes"]) for one in mine["running"]
    } == {"own-two": (1, 0), "borrows-one": (1, 0)}


@pytest.mark.slow
def test_what_is_larger_than_its_queue_stands_behind_the_line_without_a_number(
    watched: Watched,
) -> None:
    watched.job("never", gpus=16)
    page = Client()
    page.force_login(watched.ada)

    def shown() -> str:
        return page.get(f"/clusters/{watched.cluster.name}/queue").content.decode()

    with watching(watched.kubernetes):
        wait_until(is_read, what="everything to be listed")
        wait_until(lambda: "Larger than its queue" in shown(), what="the job")
    assert "It does not start as it is." in shown()
    assert "umber 1" not in shown()
    [mine] = Caller(watched.ada).get("queues/training/").json()["teams"]
    assert [(one["name"], one["position"], one["fits"]) for one in mine["waiting"]] == [
        ("never", None, False)
    ]


@pytest.mark.parametrize(
    ("job", "said"),
    [
        ({"position": 2}, ("waiting", "Waits, number 2", "")),
        (
            {"position": None},
            ("ending", "Not in line", "It does not start as it is."),
        ),
        (
            {"position": None, "is_gated": True},
            ("waiting", "Not in line", "Somebody has to approve it."),
        ),
        (
            {"position": 1, "fits": False},
            ("ending", "Larger than its queue", "Number 1"),
        ),
    ],
)
def test_who_waits_is_told_the_place_or_that_there_is_none(
    job: dict[str, Any], said: tuple[str, str, str]
) -> None:
    waiter = Waiter(key=JobKey("vision", "it"), gpus=1, priority=0, since=None, **job)
    found = waits(waiter)
    assert (found.tone, found.word, found.note) == said


def test_pods_of_which_some_are_on_nodes_are_counted() -> None:
    job = Holder(
        key=JobKey("vision", "it"),
        gpus={"a100": 4},
        priority=0,
        since=None,
        may_be_stopped=False,
        pods=4,
        on_nodes=1,
    )
    assert holds(job).word == "Let in, 1 of 4 pods on a node"


@pytest.mark.parametrize(
    ("held", "limit", "said"),
    [
        (2, 0, ""),
        (3, 1, "1 job would stop if other teams called back what is borrowed."),
        (3, 0, "1 job runs on GPUs that are no longer held."),
    ],
)
def test_what_runs_beyond_the_guarantee_is_borrowed_or_no_longer_held(
    held: int, limit: int, said: str
) -> None:
    job = Holder(
        key=JobKey("vision", "it"),
        gpus={"a100": 1},
        priority=0,
        since=None,
        may_be_stopped=held > 2,
    )
    share = Share(flavor="a100", guaranteed=2, held=held, limit=limit)
    assert stops_of(QueueLine(shares=[share], running=[job], waiting=[])) == said
