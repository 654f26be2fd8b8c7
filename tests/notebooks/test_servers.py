"""Notebook servers from launch to end: what a hub is told, what becomes of it, and what survives which fault."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.db import DatabaseError, transaction
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from starlette.responses import PlainTextResponse

from accounts.models import Membership, User
from accounts.roles import Role
from allocations import actions as allocations
from allocations.ends.actions import give_back
from allocations.models import Allocation
from approvals.requests.actions import submit
from approvals.requests.wanted import resolve
from audit.actors import PORTAL
from audit.models import Event
from connectors.jupyterhub import HubServer, JupyterHub
from fleet.models import Cluster, Flavor
from notebooks.hubs.actions import connect
from notebooks.hubs.models import Hub, HubAccount
from notebooks.models import IdleStop, NotebookServer, UnknownServer
from notebooks.profile_desk import actions as profiles
from notebooks.profiles.idle import Reclaim
from notebooks.servers import actions, ending
from notebooks.servers.ending import end_what_is_over, reclaim_idle
from notebooks.servers.following import follow
from notebooks.servers.reconcile import reconcile
from notebooks.servers.savings import saved_on
from notebooks.servers.states import LEGAL, State, StopReason
from notices.models import Notice
from provisioning.actions import publish
from provisioning.models import Tenancy
from tests import factories
from tests.calling import Caller
from tests.notebooks.hub_server import AT, TOKEN, HubOfTests, hub_of_tests
from tests.provisioning.kubernetes import Kubernetes, served
from tests.remembered import remembered
from web.refusals import BadInput, Conflict, NoRight

pytestmark = pytest.mark.django_db
PROMETHEUS = "monitoring/prometheus-operated:9090"
A100 = """
slug: a100
title: A100
image: registry.example.com/notebook:1
cpus: 8
memory: 64
gpus: 1
flavor: a100
idle_minutes: 60
hours: 12
options:
  size:
    title: Size
    choices:
      one: {title: One GPU, gpus: 1, default: true}
      four: {title: Four GPUs, gpus: 4}
  image:
    title: Image
    choices:
      base: {title: Base, image: "registry.example.com/notebook:1"}
    free:
      title: Another image
      pattern: 'registry\\.example\\.com/[a-z]{1,20}:[0-9]{1,3}$'
      message: Only images of our registry.
      image: "{value}"
"""
CPU = """
slug: cpu
title: Small
image: registry.example.com/notebook:1
cpus: 2
memory: 8
"""

OWN_IMAGE = """
slug: own-image
title: Your own image
image: registry.example.com/notebook:1
cpus: 8
memory: 64
gpus: 1
flavor: a100
options:
  image:
    title: Image
    free:
      title: Image
      pattern: 'registry\\.example\\.com/[a-z]{1,20}:[0-9]{1,3}$'
      image: "{value}"
"""


@pytest.fixture(scope="module")
def hub_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HubOfTests]:
    with hub_of_tests(tmp_path_factory.mktemp("hub")) as made:
        yield made


@pytest.fixture
def hub(
    hub_server: HubOfTests, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> HubOfTests:
    """A hub without servers, which the portal may call."""
    fresh = HubOfTests()
    for name in vars(fresh):
        if name not in ("address", "ca_file"):
            setattr(hub_server, name, getattr(fresh, name))
    (tmp_path / "hub").write_text(TOKEN)
    monkeypatch.setattr(settings.ENV, "hub_credentials_dir", tmp_path)
    monkeypatch.setattr(
        settings.ENV, "hub_hosts_allowed", [hub_server.address.removeprefix("https://")]
    )
    monkeypatch.setattr(settings.ENV, "ca_file", hub_server.ca_file)
    return hub_server


@remembered
def namespace() -> tuple[Tenancy, User, User]:
    """A namespace with 2 A100 and two published profiles, somebody of its team, and a platform lead."""
    lead, ada = (
        factories.person("Priya Nair", Role.PLATFORM_LEAD),
        factories.person("Ada Okafor"),
    )
    cluster = factories.cluster("training")
    a100 = factories.flavor(cluster, "a100")
    team = factories.team("Vision", by=ada)
    factories.join(team, ada)
    made = factories.tenancy(team, cluster)
    factories.allocation(ada, made, a100, gpus=2)
    factories.make_true(made)
    now = timezone.now()
    for text in (A100, CPU):
        version = profiles.save(text, by=lead, now=now)
        profiles.publish(version.profile.slug, by=lead)
    return Tenancy.objects.get(pk=made.pk), ada, lead


@pytest.fixture
def standing() -> tuple[Tenancy, User, User]:
    return namespace()


@pytest.fixture
def lead(standing: tuple[Tenancy, User, User]) -> User:
    return standing[2]


@pytest.fixture
def ada(standing: tuple[Tenancy, User, User]) -> User:
    return standing[1]


@pytest.fixture
def tenancy(standing: tuple[Tenancy, User, User], hub: HubOfTests) -> Tenancy:
    """A namespace with 2 A100 on a cluster with a hub, and two published profiles."""
    made, now = standing[0], timezone.now()
    Hub.objects.create(
        cluster=made.cluster,
        address=hub.address,
        token_file="hub",
        next_look_at=now,
        reclaim=Reclaim.ON,
        followed_since=now - timedelta(days=1),
        followed_at=now,
    )
    return made


def launch(
    tenancy: Tenancy,
    by: User,
    *,
    profile: str = "a100",
    key: str = "one",
    **options: str,
) -> NotebookServer:
    return actions.launch(
        tenancy.pk, profile, options, by=by, key=key, now=timezone.now()
    )


def worked_on(server: NotebookServer, *, at: datetime | None = None) -> NotebookServer:
    """The server after a worker's turn."""
    NotebookServer.objects.filter(pk=server.pk).update(
        requeue_at=timezone.now() - timedelta(seconds=1)
    )
    reconcile(server.pk, now=(lambda: at) if at else timezone.now)
    server.refresh_from_db()
    return server


def running(
    tenancy: Tenancy, by: User, hub: HubOfTests, **asked: Any
) -> NotebookServer:
    """A server that is ready."""
    server = worked_on(launch(tenancy, by, **asked))
    hub.come_up(server.name)
    return worked_on(server)


def reclaimed(*, at: datetime) -> None:
    """Idle ones are gone through at a moment until which the hub was followed without a gap."""
    Hub.objects.update(followed_at=at)
    reclaim_idle(now=at)


def test_a_launch_starts_the_server_at_the_hub_with_what_was_chosen(
    tenancy: Tenancy, ada: User, hub: HubOfTests
) -> None:
    server = worked_on(launch(tenancy, ada, image="base"))

    assert server.state == State.STARTING
    assert server.username == str(ada.oid)
    assert hub.options_of(server.name) == {
        "profile": f"a100--{tenancy.namespace}",
        "size": "one",
        "image": "base",
    }


def test_a_server_that_comes_up_is_ready_with_its_address(
    tenancy: Tenancy, ada: User, hub: HubOfTests
) -> None:
    server = running(tenancy, ada, hub)

    assert server.state == State.READY
    assert server.path == f"/user/{ada.oid}/{server.name}/"
    assert server.ready_at is not None
    assert Event.objects.filter(
        kind="notebook.ready", subject_id=str(server.pk)
    ).exists()


def test_the_hub_knows_a_person_by_the_name_that_it_told(
    tenancy: Tenancy, ada: User, hub: HubOfTests
) -> None:
    told = Hub.objects.get()
    HubAccount.objects.create(
        hub=told, user=ada, username="ada@example.com", first_seen_at=timezone.now()
    )

    server = worked_on(launch(tenancy, ada))

    assert list(hub.users) == ["ada@example.com"]
    assert server.username == "ada@example.com"


def test_the_same_key_is_the_same_server(
    tenancy: Tenancy, ada: User, hub: HubOfTests
) -> None:
    first, second = launch(tenancy, ada), launch(tenancy, ada)

    assert first.pk == second.pk
    with pytest.raises(Conflict, match="other values"):
        launch(tenancy, ada, profile="cpu")


def test_a_lost_answer_starts_nothing_twice(
    tenancy: Tenancy, ada: User, hub: HubOfTests
) -> None:
    hub.lost_answers = 1
    server = worked_on(launch(tenancy, ada))
    assert server.observed_generation == 0

    server = worked_on(server)

    assert server.observed_generation == 1
    assert [len(one) for one in hub.users.values()] == [1]


@pytest.mark.parametrize(
    ("profile", "options", "field", "words"),
    [
        ("nothing", {}, "profile", "no profile"),
        ("a100", {"size": "nine"}, "options.size", "one, four"),
        ("a100", {"colour": "red"}, "options.colour", "no option"),
        ("a100", {"size": "four"}, "profile", "Ask for 2 more"),
        (
            "a100",
            {"image--unlisted-choice": "docker.io/evil:1"},
            "options.image",
            "Only images of our registry",
        ),
        ("a100", {"size--unlisted-choice": "8"}, "options.size", "no free choice"),
    ],
)
def test_what_a_hub_would_refuse_is_refused_in_words(
    tenancy: Tenancy,
    ada: User,
    profile: str,
    options: dict[str, str],
    field: str,
    words: str,
) -> None:
    with pytest.raises(BadInput, match=words) as refused:
        launch(tenancy, ada, profile=profile, **options)

    assert refused.value.field == field
    assert not NotebookServer.objects.exists()


def test_a_name_that_a_hub_refuses_is_refused_before(
    tenancy: Tenancy, ada: User
) -> None:
    with pytest.raises(BadInput, match="right-to-left override") as refused:
        actions.launch(
            tenancy.pk,
            "a100",
            {"size": "one"},
            by=ada,
            key="one",
            now=timezone.now(),
            title="\u202egnp.exe",
        )
    assert refused.value.field == "title"
    assert not NotebookServer.objects.exists()


def test_only_the_team_launches_and_only_its_leads_and_the_owner_stop(
    tenancy: Tenancy, ada: User, lead: User, hub: HubOfTests
) -> None:
    stranger, mate = (
        factories.person("Ravi"),
        factories.person("Mei", teams=[tenancy.team]),
    )
    server = running(tenancy, ada, hub)

    with pytest.raises(NoRight):
        launch(tenancy, stranger)
    for nobody in (stranger, mate):
        with pytest.raises(NoRight):
            actions.stop(server.pk, by=nobody, now=timezone.now())
    Membership.objects.filter(user=mate).update(part=Membership.Part.LEAD)
    assert actions.stop(server.pk, by=mate, now=timezone.now()).state == State.STOPPING


def test_a_cluster_without_a_hub_says_so(tenancy: Tenancy, ada: User) -> None:
    Hub.objects.all().delete()

    with pytest.raises(Conflict, match="no JupyterHub"):
        launch(tenancy, ada)


def test_a_hub_that_was_disconnected_leaves_no_notebook_that_starts_for_ever(
    tenancy: Tenancy, ada: User
) -> None:
    server = launch(tenancy, ada)
    Hub.objects.all().delete()

    server = worked_on(server)

    assert (server.state, server.message) == (
        State.FAILED,
        "The cluster's hub is no longer connected to the portal.",
    )
    assert Notice.objects.filter(kind="notebook_ended", person=ada).exists()


def test_a_hub_that_was_disconnected_leaves_no_notebook_that_stops_for_ever(
    tenancy: Tenancy, ada: User, hub: HubOfTests
) -> None:
    server = running(tenancy, ada, hub)
    actions.stop(server.pk, by=ada, now=timezone.now())
    Hub.objects.all().delete()

    server = worked_on(server)

    assert (server.state, server.stop_reason, server.message) == (
        State.STOPPED,
        StopReason.PERSON,
        "",
    )


def test_a_failed_start_says_the_hubs_reason_and_tells_the_owner(
    tenancy: Tenancy, ada: User, hub: HubOfTests
) -> None:
    server = worked_on(launch(tenancy, ada))
    hub.fail(server.name, "Spawn failed: ImagePullBackOff")

    server = worked_on(server)

    assert (server.state, server.message) == (
        State.FAILED,
        "Spawn failed: ImagePullBackOff",
    )
    assert Notice.objects.filter(kind="notebook_ended", person=ada).count() == 1


def test_a_stop_is_carried_out_and_asked_for_once(
    tenancy: Tenancy, ada: User, hub: HubOfTests
) -> None:
    server = running(tenancy, ada, hub)
    hub.goes_at_once = False
    actions.stop(server.pk, by=ada, now=timezone.now())
    actions.stop(server.pk, by=ada, now=timezone.now())
    assert worked_on(server).state == State.STOPPING

    hub.goes_at_once = True
    server = worked_on(server)

    assert (server.state, server.stop_reason, server.ready_at) == (
        State.STOPPED,
        StopReason.PERSON,
        None,
    )
    assert hub.users == {str(ada.oid): {}}
    assert Event.objects.filter(kind="notebook.stopped").count() == 1
    with pytest.raises(Conflict, match="stopped"):
        actions.stop(server.pk, by=ada, now=timezone.now())


def test_its_owner_is_told_who_else_stopped_it(
    tenancy: Tenancy, ada: User, hub: HubOfTests
) -> None:
    grace = factories.person("Grace Lindqvist")
    factories.join(tenancy.team, grace, lead=True)
    for by in (ada, grace):
        server = running(tenancy, ada, hub, key=by.name)
        actions.stop(server.pk, by=by, now=timezone.now())
        assert worked_on(server).state == State.STOPPED
    [told] = Notice.objects.filter(kind="notebook_ended")
    assert (told.person, told.message["sentence"]) == (
        ada,
        "Grace Lindqvist stopped it. Its volumes stay.",
    )


def test_a_stopped_server_starts_again_under_its_name(
    tenancy: Tenancy, ada: User, hub: HubOfTests
) -> None:
    server = running(tenancy, ada, hub, image="base")
    actions.stop(server.pk, by=ada, now=timezone.now())
    worked_on(server)

    again = actions.start(server.pk, by=ada, now=timezone.now())
    worked_on(again)

    assert again.name == server.name
    assert hub.options_of(server.name)["image"] == "base"


def test_each_start_costs_what_its_gpus_cost_then(
    tenancy: Tenancy, ada: User, hub: HubOfTests
) -> None:
    server = running(tenancy, ada, hub)
    price = server.usd_per_hour
    now = timezone.now()
    began = now - timedelta(hours=2)
    NotebookServer.objects.update(created_at=began, launched_at=began, ready_at=began)
    worked_on(actions.stop(server.pk, by=ada, now=now), at=now)
    Flavor.objects.filter(name="a100").update(price_per_gpu_hour=3 * price)

    again = worked_on(actions.start(server.pk, by=ada, now=now))
    hub.come_up(again.name)
    again = worked_on(again)

    assert (again.state, again.usd_per_hour) == (State.READY, 3 * price)
    assert again.ready_at is not None
    later = again.ready_at + timedelta(hours=1)
    assert round(again.cost(later), 2) == 2 * price + 3 * price


def test_one_that_starts_again_at_another_hub_is_its_owners_there(
    tenancy: Tenancy, ada: User, lead: User, hub: HubOfTests
) -> None:
    known_as(ada, "ada")
    server = running(tenancy, ada, hub)
    assert server.username == "ada"
    actions.stop(server.pk, by=ada, now=timezone.now())
    worked_on(server)
    at_another_hub(tenancy, hub, by=lead)
    known_as(factories.person("Ada Brown"), "ada")

    again = worked_on(actions.start(server.pk, by=ada, now=timezone.now()))

    assert (again.username, again.name) == (str(ada.oid), server.name)
    assert [(user, *servers) for user, servers in hub.users.items()] == [
        (str(ada.oid), server.name)
    ]


def test_one_that_starts_again_where_another_has_its_name_takes_a_new_one(
    tenancy: Tenancy, ada: User, lead: User, hub: HubOfTests
) -> None:
    known_as(ada, "ada")
    server = running(tenancy, ada, hub)
    actions.stop(server.pk, by=ada, now=timezone.now())
    worked_on(server)
    at_another_hub(tenancy, hub, by=lead)
    other = running(tenancy, ada, hub)
    assert (other.name, other.username) == (server.name, str(ada.oid))

    again = worked_on(actions.start(server.pk, by=ada, now=timezone.now()))

    assert again.username == other.username
    assert again.has_name_of_the_portal
    assert again.name != other.name
    assert [(user, *servers) for user, servers in hub.users.items()] == [
        (str(ada.oid), other.name, again.name)
    ]


def known_as(user: User, username: str) -> None:
    """Have the hub know somebody by a name."""
    HubAccount.objects.create(
        hub=Hub.objects.get(),
        user=user,
        username=username,
        first_seen_at=timezone.now(),
    )


def at_another_hub(tenancy: Tenancy, hub: HubOfTests, *, by: User) -> None:
    """Connect a cluster to another hub, which answers at the same address here and knows nobody."""
    hub.users.clear()
    Hub.objects.update(address="https://old.example.com")
    connect(
        tenancy.cluster,
        address=hub.address,
        token_file="hub",
        by=by,
        now=timezone.now(),
    )


def test_a_hub_that_is_away_changes_nothing_and_says_why(
    tenancy: Tenancy, ada: User, hub: HubOfTests
) -> None:
    server = running(tenancy, ada, hub)
    hub.away = PlainTextResponse("", 503, headers={"Retry-After": "7"})

    follow(now=timezone.now)
    other = worked_on(launch(tenancy, ada, key="two"))

    server.refresh_from_db()
    assert server.state == State.READY
    assert (other.state, other.observed_generation) == (State.STARTING, 0)
    assert "503" in other.message


def test_a_withdrawn_token_is_said_on_the_server_and_tried_again(
    tenancy: Tenancy, ada: User, hub: HubOfTests, tmp_path: Path
) -> None:
    (tmp_path / "hub").write_text("withdrawn")
    server = worked_on(launch(tenancy, ada))
    assert "refused the portal's token" in server.message

    (tmp_path / "hub").write_text(TOKEN)

    assert worked_on(server).observed_generation == 1


def test_what_ends_elsewhere_is_seen_and_told(
    tenancy: Tenancy, ada: User, hub: HubOfTests
) -> None:
    server = running(tenancy, ada, hub)
    hub.end(server.name)

    follow(now=timezone.now)

    server.refresh_from_db()
    assert (server.state, server.stop_reason) == (State.STOPPED, StopReason.ELSEWHERE)
    assert Notice.objects.filter(kind="notebook_ended", person=ada).exists()


def test_a_server_on_a_cluster_out_of_use_is_followed(
    tenancy: Tenancy, ada: User, hub: HubOfTests
) -> None:
    server = running(tenancy, ada, hub)
    Cluster.objects.update(enabled=False)
    hub.end(server.name)

    follow(now=timezone.now)

    server.refresh_from_db()
    assert server.state == State.STOPPED


@pytest.mark.slow
def test_one_that_the_queue_preempted_says_so_and_only_of_this_launch(
    tenancy: Tenancy,
    ada: User,
    hub: HubOfTests,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    server = running(tenancy, ada, hub)
    pod = f"jupyter-{ada.oid}--{server.name}---f07954ac"
    with served() as kubernetes:
        monkeypatch.setattr(settings.ENV, "kubeconfig_dir", tmp_path)
        Cluster.objects.update(kubeconfig=kubernetes.kubeconfig(tmp_path))
        full_queue(kubernetes, tenancy.namespace)
        for name, priority in ((pod, "low"), ("train", "high")):
            kubernetes.create(queued_pod(tenancy.namespace, name, priority))
        hub.end(server.name)
        follow(now=timezone.now)

        server.refresh_from_db()
        assert (server.state, server.stop_reason) == (
            State.STOPPED,
            StopReason.PREEMPTED,
        )
        notice = Notice.objects.get(kind="notebook_ended", person=ada)
        assert "work that goes first" in str(notice.message)

        hub.come_up(server.name)
        follow(now=lambda: timezone.now() + timedelta(minutes=5))
        hub.end(server.name)
        NotebookServer.objects.update(launched_at=timezone.now() + timedelta(minutes=4))
        follow(now=lambda: timezone.now() + timedelta(minutes=6))
        server.refresh_from_db()
        assert (server.state, server.stop_reason) == (
            State.STOPPED,
            StopReason.ELSEWHERE,
        )


def test_one_that_a_maintenance_stopped_says_so(
    tenancy: Tenancy,
    ada: User,
    hub: HubOfTests,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    server = running(tenancy, ada, hub)
    pod = f"jupyter-{ada.oid}--{server.name}---f07954ac"
    now = timezone.now()
    with served() as kubernetes:
        monkeypatch.setattr(settings.ENV, "kubeconfig_dir", tmp_path)
        Cluster.objects.update(
            kubeconfig=kubernetes.kubeconfig(tmp_path),
            maintenance_starts_at=now - timedelta(minutes=1),
            maintenance_ends_at=now + timedelta(hours=1),
            maintenance_drains=True,
        )
        full_queue(kubernetes, tenancy.namespace)
        kubernetes.create(queued_pod(tenancy.namespace, pod, "low"))
        queue = ("kueue.x-k8s.io/v1beta2", "ClusterQueue")
        drained = {"spec": {"stopPolicy": "HoldAndDrain"}}
        kubernetes.patch(queue, "one", None, drained)
        hub.end(server.name)
        follow(now=timezone.now)
    server.refresh_from_db()
    assert (server.state, server.stop_reason) == (
        State.STOPPED,
        StopReason.MAINTENANCE,
    )


@pytest.fixture
def full(
    tenancy: Tenancy, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Iterator[tuple[Kubernetes, Callable[[], None]]]:
    """A cluster on which a pod of the team has the one GPU that the namespace may have, and what ends that pod."""
    with served() as kubernetes:
        monkeypatch.setattr(settings.ENV, "kubeconfig_dir", tmp_path)
        Cluster.objects.update(kubeconfig=kubernetes.kubeconfig(tmp_path))
        full_queue(kubernetes, tenancy.namespace)
        place = {"name": "team-quota", "namespace": tenancy.namespace}
        hard = {"hard": {"requests.nvidia.com/gpu": "1"}}
        kubernetes.create(
            {
                "apiVersion": "v1",
                "kind": "ResourceQuota",
                "metadata": place,
                "spec": hard,
            }
        )
        kubernetes.create(queued_pod(tenancy.namespace, "train", "high"))
        yield (
            kubernetes,
            lambda: kubernetes.delete(("v1", "Pod"), "train", tenancy.namespace),
        )


Full = tuple[Kubernetes, Callable[[], None]]
FOR_ROOM = "by its quota team-quota, requested: requests.nvidia.com/gpu=1, used: requests.nvidia.com/gpu=1"


@pytest.mark.slow
def test_one_beyond_the_namespaces_quota_waits_and_starts_when_a_pod_has_ended(
    tenancy: Tenancy, ada: User, hub: HubOfTests, full: Full
) -> None:
    _, end_pod = full
    server = worked_on(launch(tenancy, ada))
    assert (server.state, hub.users) == (State.STARTING, {})
    assert "have 1 of the 1 GPU that they may have, and it takes 1" in server.message

    end_pod()
    server = worked_on(server)
    assert (server.state, server.message) == (State.STARTING, "")
    assert server.name in hub.users[str(ada.oid)]

    # Somebody else's pod came between the look and the hub's own, and has ended already.
    hub.fail(server.name, f"The namespace has no room for this server now, {FOR_ROOM}")
    server = worked_on(server)
    assert (server.state, server.observed_generation) == (
        State.STARTING,
        server.generation - 1,
    )
    worked_on(server)
    hub.come_up(server.name)
    assert worked_on(server).state == State.READY


def test_its_own_pod_does_not_stand_in_its_way_when_the_answer_to_its_start_was_lost(
    tenancy: Tenancy, ada: User, hub: HubOfTests, full: Full
) -> None:
    kubernetes, end_pod = full
    end_pod()
    hub.lost_answers = 1
    server = worked_on(launch(tenancy, ada))
    assert server.observed_generation == 0
    kubernetes.create(queued_pod(tenancy.namespace, f"jupyter--{server.name}", "low"))
    assert worked_on(server).observed_generation == 1
    hub.come_up(server.name)
    assert worked_on(server).state == State.READY


@pytest.mark.slow
def test_one_that_waits_is_stopped_like_any_other(
    tenancy: Tenancy, ada: User, hub: HubOfTests, full: Full
) -> None:
    server = worked_on(launch(tenancy, ada))
    actions.stop(server.pk, by=ada, now=timezone.now())
    server = worked_on(server)
    assert (server.state, server.stop_reason) == (State.STOPPED, StopReason.PERSON)


def test_one_that_the_namespace_can_never_have_is_not_waited_for(
    tenancy: Tenancy, ada: User, hub: HubOfTests, full: Full
) -> None:
    server = worked_on(launch(tenancy, ada))
    assert server.state == State.STARTING
    none = tuple(
        replace(flavor, gpus=0, borrow=0, over=0) for flavor in tenancy.desired.flavors
    )
    publish(
        tenancy,
        spec=replace(tenancy.desired, flavors=none),
        actor=PORTAL,
        now=timezone.now(),
    )
    factories.make_true(tenancy)
    server = worked_on(server)
    assert (server.state, hub.users) == (State.FAILED, {})
    assert server.message.startswith(
        "It takes 1 GPU, and the namespace may have 0 GPUs by now."
    )


def full_queue(kubernetes: Kubernetes, namespace: str) -> None:
    """A queue of one GPU in a namespace, and two priorities."""
    api, quota = (
        "kueue.x-k8s.io/v1beta2",
        [{"name": "nvidia.com/gpu", "nominalQuota": "1"}],
    )
    groups = [
        {
            "coveredResources": ["nvidia.com/gpu"],
            "flavors": [{"name": "one", "resources": quota}],
        },
    ]
    preemption = {"withinClusterQueue": "LowerPriority"}
    spec = {"namespaceSelector": {}, "resourceGroups": groups, "preemption": preemption}
    kubernetes.create(
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}
    )
    kubernetes.create(
        {
            "apiVersion": api,
            "kind": "ResourceFlavor",
            "metadata": {"name": "one"},
            "spec": {},
        }
    )
    for name, value in (("low", 1), ("high", 2)):
        kubernetes.create(
            {
                "apiVersion": api,
                "kind": "WorkloadPriorityClass",
                "metadata": {"name": name},
                "value": value,
            }
        )
    kubernetes.create(
        {
            "apiVersion": api,
            "kind": "ClusterQueue",
            "metadata": {"name": "one"},
            "spec": spec,
        }
    )
    place = {"name": "default", "namespace": namespace}
    kubernetes.create(
        {
            "apiVersion": api,
            "kind": "LocalQueue",
            "metadata": place,
            "spec": {"clusterQueue": "one"},
        }
    )


def queued_pod(namespace: str, name: str, priority: str) -> dict[str, Any]:
    """A pod in that queue, which takes all of it."""
    marks = {
        "kueue.x-k8s.io/queue-name": "default",
        "kueue.x-k8s.io/priority-class": priority,
    }
    resources = {"limits": {"nvidia.com/gpu": "1"}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace, "labels": marks},
        "spec": {
            "containers": [
                {"name": "notebook", "image": "lab:1", "resources": resources}
            ]
        },
    }


def test_a_server_that_was_started_in_the_hub_appears(
    tenancy: Tenancy, ada: User, hub: HubOfTests
) -> None:
    chosen = {"profile": f"a100--{tenancy.namespace}", "image": "base"}
    hub.start_inside(str(ada.oid), "mine", chosen)
    hub.start_inside("stranger", "theirs", chosen)

    follow(now=timezone.now)
    follow(now=timezone.now)

    server = NotebookServer.objects.get()
    assert (server.owner, server.name, server.state, server.gpus) == (
        ada,
        "mine",
        State.READY,
        1,
    )


def published(lead: User, *changes: tuple[str, str]) -> None:
    text = A100
    for before, after in changes:
        assert before in text
        text = text.replace(before, after)
    profiles.save(text, by=lead, now=timezone.now())
    profiles.publish("a100", by=lead)


@pytest.mark.parametrize("said", [{}, {"size": "one"}], ids=["nothing", "a size"])
def test_a_new_version_of_its_profile_changes_nothing_of_one_that_runs(
    tenancy: Tenancy, ada: User, lead: User, hub: HubOfTests, said: dict[str, str]
) -> None:
    chosen = {"profile": f"a100--{tenancy.namespace}", **said}
    hub.start_inside(str(ada.oid), "mine", chosen)
    follow(now=timezone.now)
    began = timezone.now() - timedelta(hours=11)
    NotebookServer.objects.update(ready_at=began, launched_at=began, created_at=began)
    published(
        lead,
        ("title: One GPU, gpus: 1, default: true", "title: One GPU, gpus: 1"),
        ("title: Four GPUs, gpus: 4", "title: Four GPUs, gpus: 4, default: true"),
    )

    follow(now=timezone.now)

    server = NotebookServer.objects.get()
    assert (server.gpus, server.profile_version) == (1, 1)
    assert server.ready_at == began


def test_one_that_is_started_again_with_a_choice_of_a_newer_version_counts_with_it(
    tenancy: Tenancy, ada: User, lead: User, hub: HubOfTests
) -> None:
    chosen = {"profile": f"a100--{tenancy.namespace}", "size": "one"}
    hub.start_inside(str(ada.oid), "mine", chosen)
    follow(now=timezone.now)
    NotebookServer.objects.update(ready_at=timezone.now() - timedelta(hours=1))
    published(lead, ("title: Four GPUs, gpus: 4", "title: Four GPUs, gpus: 2"))

    hub.start_inside(str(ada.oid), "mine", {**chosen, "size": "four"})
    follow(now=timezone.now)

    server = NotebookServer.objects.get()
    assert (server.gpus, server.profile_version) == (2, 2)
    # An hour of one GPU, and no more than moments of two.
    assert round(server.spent_usd, 1) == round(server.usd_per_hour / 2, 1)


@pytest.mark.slow
@pytest.mark.parametrize("is_seen_to_end", [True, False])
@pytest.mark.parametrize("is_named", [True, False])
def test_one_that_is_started_again_in_the_hub_counts_with_its_new_choices_and_namespace(
    tenancy: Tenancy, ada: User, hub: HubOfTests, is_seen_to_end: bool, is_named: bool
) -> None:
    other = namespace_of_another_team(tenancy, ada)
    name = "mine" if is_named else ""
    hub.start_inside(str(ada.oid), name, {"profile": f"cpu--{tenancy.namespace}"})
    follow(now=timezone.now)
    began = timezone.now() - timedelta(minutes=5)
    NotebookServer.objects.update(ready_at=began, warned_at=began)
    if is_seen_to_end:
        hub.end(name)
        follow(now=timezone.now)
        assert NotebookServer.objects.get().state == State.STOPPED

    chosen = {"profile": f"a100--{other.namespace}", "size": "one"}
    hub.start_inside(str(ada.oid), name, chosen)
    follow(now=timezone.now)
    follow(now=timezone.now)

    server = NotebookServer.objects.get()
    a100 = Flavor.objects.get(name="a100")
    assert (server.state, server.profile.slug, server.options["size"]) == (
        State.READY,
        "a100",
        "one",
    )
    assert (server.tenancy, server.team) == (other, other.team)
    assert (server.flavor, server.gpus) == (a100, 1)
    assert server.usd_per_hour == a100.price_per_gpu_hour
    assert server.ready_at is not None
    assert server.ready_at > began
    # What ran before was another team's.
    assert server.spent_usd == 0
    assert (server.ran_seconds, server.warned_at) == (0, None)
    assert Event.objects.filter(kind="notebook.ready").count() == 1
    reclaimed(at=server.ready_at + timedelta(minutes=61))
    server.refresh_from_db()
    assert server.warned_at is not None


@pytest.mark.parametrize("is_seen_to_end", [True, False])
def test_one_that_is_started_again_in_the_hub_from_no_profile_is_listed_for_platform_leads(
    tenancy: Tenancy, ada: User, hub: HubOfTests, is_seen_to_end: bool
) -> None:
    server = running(tenancy, ada, hub)
    if is_seen_to_end:
        hub.end(server.name)
        follow(now=timezone.now)

    hub.start_inside(server.username, server.name, {"profile": "something-else"})
    follow(now=timezone.now)
    follow(now=timezone.now)

    server.refresh_from_db()
    assert (server.state, server.stop_reason) == (State.STOPPED, StopReason.ELSEWHERE)
    listed = UnknownServer.objects.get()
    assert (listed.username, listed.name, listed.reason) == (
        server.username,
        server.name,
        "profile",
    )


@pytest.mark.parametrize("is_seen_to_end", [True, False])
def test_one_whose_profile_is_retired_meanwhile_stays_what_it_is(
    tenancy: Tenancy, ada: User, lead: User, hub: HubOfTests, is_seen_to_end: bool
) -> None:
    # The hub tells no choice that nobody made.
    hub.start_inside(str(ada.oid), "mine", {"profile": f"a100--{tenancy.namespace}"})
    follow(now=timezone.now)
    if is_seen_to_end:
        # For a moment, by mistake.
        hub.end("mine")
        follow(now=timezone.now)
    profiles.deprecate("a100", by=lead, reason="It is old.")
    profiles.retire("a100", by=lead, reason="It is old.")

    hub.come_up("mine")
    follow(now=timezone.now)

    server = NotebookServer.objects.get()
    assert (server.state, server.gpus) == (State.READY, 1)
    assert not UnknownServer.objects.exists()


def test_a_list_from_before_a_server_was_ready_says_nothing_of_its_choices(
    tenancy: Tenancy, ada: User, hub: HubOfTests, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = running(tenancy, ada, hub)
    hub.users[server.username][server.name]["user_options"] = {
        "profile": f"cpu--{tenancy.namespace}"
    }
    read = JupyterHub.servers

    def ready_meanwhile(client: JupyterHub) -> list[HubServer]:
        found = read(client)
        NotebookServer.objects.update(ready_at=timezone.now())
        return found

    monkeypatch.setattr(JupyterHub, "servers", ready_meanwhile)
    follow(now=timezone.now)

    server.refresh_from_db()
    assert (server.state, server.gpus) == (State.READY, 1)


def test_a_list_from_before_a_stop_brings_nothing_back(
    tenancy: Tenancy, ada: User, hub: HubOfTests, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = running(tenancy, ada, hub)
    read = JupyterHub.servers

    def stopped_meanwhile(client: JupyterHub) -> list[HubServer]:
        found = read(client)
        actions.stop_because(server.pk, StopReason.IDLE, now=timezone.now())
        assert worked_on(server).state == State.STOPPED
        return found

    with monkeypatch.context() as patched:
        patched.setattr(JupyterHub, "servers", stopped_meanwhile)
        follow(now=timezone.now)

    server.refresh_from_db()
    assert (server.state, server.stop_reason) == (State.STOPPED, StopReason.IDLE)
    [stop] = IdleStop.objects.all()
    assert stop.until > timezone.now()
    assert not UnknownServer.objects.exists()

    hub.start_inside(server.username, server.name, server.user_options)
    follow(now=timezone.now)
    server.refresh_from_db()
    assert server.state == State.READY


def namespace_of_another_team(tenancy: Tenancy, member: User) -> Tenancy:
    """A namespace beside another one, of another team of its member."""
    team = factories.team("Speech", by=member)
    factories.join(team, member)
    return factories.tenancy(team, tenancy.cluster)


def test_servers_of_people_whom_the_portal_does_not_know_stand_on_the_hubs_page_for_platform_leads(
    tenancy: Tenancy, ada: User, lead: User, hub: HubOfTests
) -> None:
    hub.start_inside(
        "stranger@example.com", "theirs", {"profile": f"a100--{tenancy.namespace}"}
    )
    hub.start_inside(str(ada.oid), "odd", {"profile": "something-else"})

    follow(now=timezone.now)
    follow(now=timezone.now)

    where = reverse("hub", args=[tenancy.cluster.name])
    browser, person = Client(), Client()
    browser.force_login(lead)
    person.force_login(ada)
    shown = browser.get(where).content.decode()
    for words in (
        "stranger@example.com",
        "theirs",
        "sign in to the portal once",
        "odd",
        "from no profile",
    ):
        assert words in shown
    assert person.get(where).status_code == 403
    told = Caller(lead).get(f"hubs/{tenancy.cluster.name}/").json()["unknown_servers"]
    assert [(one["username"], one["name"], one["reason"]) for one in told] == [
        (str(ada.oid), "odd", "profile"),
        ("stranger@example.com", "theirs", "person"),
    ]
    assert all(datetime.fromisoformat(one["since"]) == AT for one in told)

    # They are away again, and what the portal comes to know is no stranger's any more.
    hub.users["stranger@example.com"].clear()
    hub.users[str(ada.oid)]["odd"]["user_options"] = {
        "profile": f"cpu--{tenancy.namespace}"
    }
    follow(now=timezone.now)
    assert (
        Caller(lead).get(f"hubs/{tenancy.cluster.name}/").json()["unknown_servers"]
        == []
    )
    assert "theirs" not in browser.get(where).content.decode()
    assert NotebookServer.objects.get().name == "odd"


def test_what_is_not_known_of_a_hub_ends_with_its_address(
    tenancy: Tenancy, lead: User, hub: HubOfTests
) -> None:
    hub.start_inside("stranger", "theirs", {})
    follow(now=timezone.now)
    assert UnknownServer.objects.count() == 1

    connect(
        tenancy.cluster,
        address="https://other.example.com",
        token_file="hub",
        by=lead,
        now=timezone.now(),
    )

    assert not UnknownServer.objects.exists()


def test_who_leaves_the_team_loses_the_server(
    tenancy: Tenancy, ada: User, hub: HubOfTests
) -> None:
    grace = factories.person("Grace Lindqvist")
    factories.join(tenancy.team, grace, lead=True)
    server = running(tenancy, ada, hub)
    Membership.objects.filter(user=ada).delete()

    end_what_is_over(now=timezone.now())

    server = worked_on(server)
    assert (server.state, server.stop_reason) == (
        State.STOPPED,
        StopReason.NOT_A_MEMBER,
    )
    told = Notice.objects.get(kind="notebook_ended", person=ada)
    # Its page is not theirs any more.
    assert told.link == "/"
    assert told.message["sentence"].startswith("You are no longer of its team.")
    lead = Notice.objects.get(kind="notebook_ended", person=grace)
    assert lead.link == f"/notebooks/{server.pk}"
    assert lead.message["sentence"] == (
        "Ada Okafor is no longer of the team. What is saved on its volumes stays. "
        "GPUs that are held for it cost on until they are given back."
    )


def test_notebooks_of_somebody_who_lost_access_are_stopped_and_the_leads_of_the_team_are_told(
    tenancy: Tenancy, ada: User, hub: HubOfTests
) -> None:
    grace, mei, gone = (
        factories.person("Grace Lindqvist"),
        factories.person("Mei Chen"),
        factories.person(),
    )
    factories.join(tenancy.team, grace, lead=True)
    factories.join(tenancy.team, gone, lead=True)
    factories.join(tenancy.team, mei)
    server = running(tenancy, ada, hub)
    starting = worked_on(launch(tenancy, ada, profile="cpu", key="starts"))
    User.objects.filter(pk__in=[ada.pk, gone.pk]).update(is_active=False)

    end_what_is_over(now=timezone.now())

    for one in (worked_on(server), worked_on(starting)):
        assert (one.state, one.stop_reason) == (State.STOPPED, StopReason.NOT_A_MEMBER)
        assert one.name not in hub.users[str(ada.oid)]
    told = Notice.objects.filter(kind="notebook_ended", subject_id=server.pk)
    assert [one.person for one in told] == [grace]
    assert told[0].message["title"] == "A100 of Ada Okafor was stopped"
    assert (
        "Ada Okafor has no access to the portal any more" in told[0].message["sentence"]
    )
    browser = Client()
    browser.force_login(grace)
    assert browser.get(told[0].link).status_code == 200


def test_the_limit_of_a_profile_ends_a_server(
    tenancy: Tenancy, ada: User, hub: HubOfTests
) -> None:
    server = running(tenancy, ada, hub)
    assert server.ready_at is not None

    end_what_is_over(now=server.ready_at + timedelta(hours=11, seconds=-1))
    assert not Notice.objects.filter(kind="notebook_idle").exists()
    for left in (timedelta(hours=1), timedelta(seconds=1)):
        end_what_is_over(now=server.ready_at + timedelta(hours=12) - left)
    server.refresh_from_db()
    assert server.state == State.READY
    (told,) = Notice.objects.filter(kind="notebook_idle")
    assert told.message["title"] == f"{server.title} ends in 1 h"
    end_what_is_over(now=server.ready_at + timedelta(hours=12))

    server.refresh_from_db()
    assert server.stop_reason == StopReason.LIMIT


def test_an_idle_server_is_warned_of_and_then_stopped(
    tenancy: Tenancy, ada: User, hub: HubOfTests
) -> None:
    server = running(tenancy, ada, hub)
    assert server.ready_at is not None
    idle = timedelta(minutes=46)

    reclaimed(at=server.ready_at + idle)
    reclaimed(at=server.ready_at + idle)
    assert Notice.objects.filter(kind="notebook_idle").count() == 1
    reclaimed(at=server.ready_at + timedelta(minutes=61))

    server.refresh_from_db()
    assert (server.state, server.stop_reason) == (State.STOPPING, StopReason.IDLE)


def test_a_kept_server_stays_and_a_second_time_needs_a_reason(
    tenancy: Tenancy, ada: User, hub: HubOfTests
) -> None:
    server = running(tenancy, ada, hub)
    assert server.ready_at is not None
    reclaimed(at=server.ready_at + timedelta(minutes=50))

    actions.keep(server.pk, by=ada, now=server.ready_at + timedelta(minutes=55))
    reclaimed(at=server.ready_at + timedelta(minutes=70))

    server.refresh_from_db()
    assert server.state == State.READY
    with pytest.raises(BadInput, match="Say why"):
        actions.keep(server.pk, by=ada, now=timezone.now())
    actions.keep(
        server.pk,
        by=ada,
        now=timezone.now(),
        reason="The dataset loads for three hours.",
    )


def test_an_exempt_notebook_is_not_stopped_as_idle_until_its_end_and_keeps_that_over_a_restart(
    tenancy: Tenancy, ada: User, lead: User, hub: HubOfTests
) -> None:
    server = running(tenancy, ada, hub)
    assert server.ready_at is not None
    began = server.ready_at
    until = began + timedelta(days=5)
    reclaimed(at=began + timedelta(minutes=50))

    actions.exempt(
        server.pk, until=until, reason="A demo for the board.", by=lead, now=began
    )
    reclaimed(at=began + timedelta(days=1))
    server.refresh_from_db()
    assert (server.state, server.warned_at) == (State.READY, None)
    actions.stop(server.pk, by=ada, now=timezone.now())
    worked_on(server)
    actions.start(server.pk, by=ada, now=began + timedelta(days=2))
    worked_on(server)
    hub.come_up(server.name)
    server = worked_on(server)

    assert (server.exempt_until, server.exempt_by) == (until, lead)
    reclaimed(at=until)
    server.refresh_from_db()
    assert (server.state, server.warned_at) == (State.READY, None)
    reclaimed(at=until + timedelta(minutes=50))
    reclaimed(at=until + timedelta(minutes=70))
    server.refresh_from_db()
    assert (server.state, server.stop_reason) == (State.STOPPING, StopReason.IDLE)
    kinds = Event.objects.filter(kind="notebook.exempted", subject_id=str(server.pk))
    assert kinds.count() == 1


def test_an_exemption_that_is_ended_counts_no_longer_and_ends_once(
    tenancy: Tenancy, ada: User, lead: User, hub: HubOfTests
) -> None:
    server = running(tenancy, ada, hub)
    now = timezone.now()
    actions.exempt(
        server.pk, until=now + timedelta(days=5), reason="A demo.", by=lead, now=now
    )

    for _ in range(2):
        actions.end_exemption(server.pk, by=lead, now=now + timedelta(hours=3))

    assert Event.objects.filter(kind="notebook.exemption_ended").count() == 1
    reclaimed(at=now + timedelta(hours=3))
    assert Notice.objects.filter(kind="notebook_idle").count() == 1


@pytest.mark.parametrize(
    ("days", "reason", "code"),
    [
        (31, "A demo.", "bad_end"),
        (-1, "A demo.", "bad_end"),
        (1, " ", "reason_missing"),
    ],
)
def test_an_exemption_has_an_end_within_a_month_and_a_reason(
    tenancy: Tenancy, ada: User, lead: User, days: int, reason: str, code: str
) -> None:
    server, now = launch(tenancy, ada), timezone.now()
    with pytest.raises(BadInput) as refused:
        actions.exempt(
            server.pk, until=now + timedelta(days=days), reason=reason, by=lead, now=now
        )
    assert refused.value.code == code
    with pytest.raises(NoRight):
        actions.exempt(
            server.pk, until=now + timedelta(days=1), reason="Mine.", by=ada, now=now
        )
    with pytest.raises(NoRight):
        actions.end_exemption(server.pk, by=ada, now=now)


def test_work_that_was_seen_takes_the_warning_back(
    tenancy: Tenancy, ada: User, hub: HubOfTests
) -> None:
    server = running(tenancy, ada, hub)
    assert server.ready_at is not None
    reclaimed(at=server.ready_at + timedelta(minutes=50))
    hub.used(server.name, server.ready_at + timedelta(minutes=55))

    follow(now=timezone.now)
    reclaimed(at=server.ready_at + timedelta(minutes=70))

    server.refresh_from_db()
    assert (server.state, server.warned_at) == (State.READY, None)


def test_what_idle_stops_spare_is_counted_until_the_next_start_and_for_a_day_at_most(
    tenancy: Tenancy, ada: User, lead: User, hub: HubOfTests
) -> None:
    server = running(tenancy, ada, hub)
    assert server.ready_at is not None
    reclaimed(at=server.ready_at + timedelta(minutes=50))
    reclaimed(at=server.ready_at + timedelta(minutes=70))
    server = worked_on(server)
    assert (server.state, server.stop_reason) == (State.STOPPED, StopReason.IDLE)
    [stop] = IdleStop.objects.all()

    def spared(hours: int) -> tuple[int, Decimal, Decimal]:
        found = saved_on(
            tenancy.cluster_id, now=stop.stopped_at + timedelta(hours=hours)
        )
        return found.stops, found.gpu_hours, found.usd.quantize(Decimal("0.01"))

    assert spared(2) == (1, Decimal(2), 2 * server.usd_per_hour)
    assert spared(60) == (1, Decimal(24), 24 * server.usd_per_hour)
    assert spared(31 * 24)[0] == 0

    actions.start(server.pk, by=ada, now=stop.stopped_at + timedelta(hours=3))
    assert spared(60) == (1, Decimal(3), 3 * server.usd_per_hour)
    NotebookServer.objects.all().delete()
    assert spared(60)[0] == 1
    browser = Client()
    browser.force_login(lead)
    shown = browser.get(reverse("hub", args=[tenancy.cluster.name])).content.decode()
    assert "One was stopped in the last 30 days, which freed" in shown
    told = Caller(lead).get(f"hubs/{tenancy.cluster.name}/").json()["saved"]
    assert told["stops"] == 1


def test_one_that_somebody_stopped_spares_nothing(
    tenancy: Tenancy, ada: User, hub: HubOfTests
) -> None:
    server = running(tenancy, ada, hub)
    actions.stop(server.pk, by=ada, now=timezone.now())
    assert worked_on(server).state == State.STOPPED
    assert not IdleStop.objects.exists()


def test_gpus_that_compute_count_as_use(
    tenancy: Tenancy, ada: User, hub: HubOfTests
) -> None:
    server = running(tenancy, ada, hub)
    assert server.ready_at is not None
    reclaimed(at=server.ready_at + timedelta(minutes=50))
    actions.note_gpu_use(
        [server.pk], busy=[server.pk], now=server.ready_at + timedelta(minutes=55)
    )

    reclaimed(at=server.ready_at + timedelta(minutes=90))
    server.refresh_from_db()
    assert (server.state, server.warned_at) == (State.READY, None)

    reclaimed(at=server.ready_at + timedelta(minutes=110))
    reclaimed(at=server.ready_at + timedelta(minutes=125))
    server.refresh_from_db()
    assert (server.state, server.stop_reason) == (State.STOPPING, StopReason.IDLE)


@pytest.mark.slow
@pytest.mark.parametrize("is_observed", [True, False])
def test_while_its_hub_is_silent_nothing_is_idle_and_after_that_it_counts_anew(
    tenancy: Tenancy, ada: User, hub: HubOfTests, is_observed: bool
) -> None:
    server = running(tenancy, ada, hub)
    assert server.ready_at is not None
    began = server.ready_at
    reclaimed(at=began + timedelta(minutes=46))
    assert Notice.objects.filter(kind="notebook_idle").count() == 1

    # It answers no more from now on, when the stop comes, whether somebody has found that out or not.
    hub.away = PlainTextResponse("", 503)
    follow(now=lambda: began + timedelta(minutes=61))
    if is_observed:
        away = {
            "reachable": False,
            "failures": 1,
            "message": "Away.",
            "looked_at": timezone.now(),
        }
        Hub.objects.update(**away)
    for minutes in (61, 600):
        reclaim_idle(now=began + timedelta(minutes=minutes))
        server.refresh_from_db()
        assert (server.state, server.warned_at) == (State.READY, None)

    hub.away = None
    Hub.objects.filter(reachable=False).update(reachable=True, failures=0, message="")
    again = began + timedelta(minutes=600)
    follow(now=lambda: again)
    reclaim_idle(now=again)
    reclaimed(at=again + timedelta(minutes=44))
    server.refresh_from_db()
    assert (server.state, server.warned_at) == (State.READY, None)
    reclaimed(at=again + timedelta(minutes=46))
    reclaimed(at=again + timedelta(minutes=61))

    server.refresh_from_db()
    assert (server.state, server.stop_reason) == (State.STOPPING, StopReason.IDLE)
    assert Notice.objects.filter(kind="notebook_idle").count() == 2


def test_a_hub_that_is_away_for_a_moment_takes_a_warning_back_and_does_not_begin_anew(
    tenancy: Tenancy, ada: User, hub: HubOfTests
) -> None:
    server = running(tenancy, ada, hub)
    assert server.ready_at is not None
    began = server.ready_at
    reclaimed(at=began + timedelta(minutes=50))
    away = {
        "reachable": False,
        "failures": 1,
        "message": "Away.",
        "looked_at": timezone.now(),
    }
    Hub.objects.update(**away)
    reclaim_idle(now=began + timedelta(minutes=51))
    server.refresh_from_db()
    assert server.warned_at is None
    Hub.objects.update(reachable=True, failures=0, message="")

    follow(now=lambda: began + timedelta(minutes=53))
    reclaim_idle(now=began + timedelta(minutes=53))

    server.refresh_from_db()
    assert server.warned_at == began + timedelta(minutes=53)


def test_what_an_earlier_round_says_of_a_hub_moves_nothing_back(
    tenancy: Tenancy, ada: User, hub: HubOfTests
) -> None:
    later = timezone.now() + timedelta(hours=1)
    follow(now=lambda: later)
    follow(now=lambda: later - timedelta(seconds=20))

    found = Hub.objects.get()
    assert (found.followed_since, found.followed_at) == (later, later)


def test_a_silent_prometheus_keeps_a_notebook_from_being_idle_until_it_was_measured_for_the_whole_time(
    tenancy: Tenancy, ada: User, hub: HubOfTests
) -> None:
    Cluster.objects.update(prometheus=PROMETHEUS)
    server = running(tenancy, ada, hub)
    assert server.ready_at is not None
    began = server.ready_at

    measured_until(server, began, minutes=46)
    reclaimed(at=began + timedelta(minutes=46))
    assert Notice.objects.filter(kind="notebook_idle").count() == 1
    # It is silent from now on, when the stop comes.
    for minutes in (61, 600):
        reclaimed(at=began + timedelta(minutes=minutes))
        server.refresh_from_db()
        assert (server.state, server.warned_at) == (State.READY, None)

    measured_until(server, began + timedelta(minutes=600), minutes=59)
    reclaimed(at=began + timedelta(minutes=659))
    server.refresh_from_db()
    assert (server.state, server.warned_at is None) == (State.READY, False)
    measured_until(server, began + timedelta(minutes=659), minutes=16)
    reclaimed(at=began + timedelta(minutes=675))

    server.refresh_from_db()
    assert (server.state, server.stop_reason) == (State.STOPPING, StopReason.IDLE)
    assert Notice.objects.filter(kind="notebook_idle").count() == 2


def test_a_prometheus_that_never_answered_stops_nothing_and_the_hubs_page_says_so(
    tenancy: Tenancy, ada: User, lead: User, hub: HubOfTests
) -> None:
    Cluster.objects.update(prometheus=PROMETHEUS)
    server = running(tenancy, ada, hub)
    earlier = timezone.now() - timedelta(hours=20)
    NotebookServer.objects.update(
        created_at=earlier, launched_at=earlier, ready_at=earlier, active_at=earlier
    )

    reclaimed(at=timezone.now())
    reclaimed(at=timezone.now() + timedelta(hours=1))

    server.refresh_from_db()
    assert (server.state, server.warned_at) == (State.READY, None)
    page = reverse("hub", args=[tenancy.cluster.name])
    browser = Client()
    browser.force_login(lead)
    assert (
        "Nobody can tell whether 1 notebook is idle"
        in browser.get(page).content.decode()
    )
    [told] = Caller(lead).get(f"hubs/{tenancy.cluster.name}/").json()["idle_unknown"]
    assert (told["id"], told["title"]) == (server.pk, server.title)

    actions.note_gpu_use([server.pk], busy=[], now=timezone.now())
    assert "Nobody can tell" not in browser.get(page).content.decode()
    assert (
        Caller(lead).get(f"hubs/{tenancy.cluster.name}/").json()["idle_unknown"] == []
    )


def measured_until(server: NotebookServer, since: datetime, *, minutes: int) -> None:
    """The cluster's Prometheus says every minute that the server's GPUs rest."""
    for minute in range(minutes + 1):
        actions.note_gpu_use(
            [server.pk], busy=[], now=since + timedelta(minutes=minute)
        )


def test_what_is_kept_while_idle_ones_are_gone_through_is_not_stopped(
    tenancy: Tenancy, ada: User, hub: HubOfTests, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = running(tenancy, ada, hub)
    assert server.ready_at is not None
    reclaimed(at=server.ready_at + timedelta(minutes=50))
    late = server.ready_at + timedelta(minutes=70)
    read = ending.documents_of

    def kept_meanwhile(servers: list[NotebookServer]) -> Any:
        actions.keep(server.pk, by=ada, now=late)
        return read(servers)

    monkeypatch.setattr(ending, "documents_of", kept_meanwhile)
    reclaimed(at=late)
    server.refresh_from_db()
    assert server.state == State.READY


@pytest.mark.parametrize("mode", [Reclaim.OFF, Reclaim.WARN])
def test_a_cluster_that_does_not_reclaim_stops_nothing(
    tenancy: Tenancy, ada: User, hub: HubOfTests, mode: Reclaim
) -> None:
    Hub.objects.update(reclaim=mode)
    server = running(tenancy, ada, hub)
    assert server.ready_at is not None

    for minutes in (50, 90, 900):
        reclaimed(at=server.ready_at + timedelta(minutes=minutes))

    server.refresh_from_db()
    assert server.state == State.READY
    assert Notice.objects.filter(kind="notebook_idle").count() == (mode is Reclaim.WARN)


def test_a_notebook_that_is_asked_for_starts_once_its_quota_is_there_and_costs_once_it_is_ready(
    tenancy: Tenancy, ada: User, hub: HubOfTests
) -> None:
    wanted = resolve(
        "notebook",
        {"flavor": "training/a100", "gpus": 1, "profile": "a100"},
        team=tenancy.team,
        until=timezone.now() + timedelta(hours=5),
        reason="Look at the failed frames.",
    )
    asked = submit(wanted, by=ada, now=timezone.now())
    allocation = Allocation.objects.get(hold=asked.hold)
    server = NotebookServer.objects.get()
    assert (allocation.notebook, allocation.charged_from, server.owner) == (
        server,
        None,
        ada,
    )
    worked_on(server)
    assert hub.users == {}

    factories.make_true(Tenancy.objects.get(pk=tenancy.pk))
    worked_on(server)
    assert not allocations.observe(allocation.pk, now=timezone.now())
    NotebookServer.objects.update(message="Pods of this namespace have all of them.")
    browser = Client()
    browser.force_login(ada)
    shown = browser.get(f"/requests/{asked.pk}/").content.decode()
    assert shown.count("Pods of this namespace have all of them.") == 2
    assert "Usually a few seconds" not in shown
    hub.come_up(server.name)
    worked_on(server)
    assert allocations.not_charged_yet(timezone.now()) == [allocation.pk]
    assert allocations.observe(allocation.pk, now=timezone.now())

    give_back(allocation.pk, gpus=None, by=ada, now=timezone.now())
    server.refresh_from_db()
    assert (server.state, server.stop_reason) == (State.STOPPING, StopReason.END)


@pytest.mark.parametrize(
    ("spec", "field", "words"),
    [
        ({"profile": "nothing"}, "profile", "no profile"),
        ({"profile": "cpu"}, "profile", "takes no GPUs"),
        ({"flavor": "training/t4"}, "profile", "of the kind A100"),
        ({"profile": "own-image"}, "profile", "a choice of your own"),
    ],
)
def test_a_notebook_that_could_not_start_is_refused_before_it_is_granted(
    tenancy: Tenancy,
    ada: User,
    lead: User,
    spec: dict[str, Any],
    field: str,
    words: str,
) -> None:
    factories.flavor(tenancy.cluster, "t4", product="T4")
    version = profiles.save(OWN_IMAGE, by=lead, now=timezone.now())
    profiles.publish(version.profile.slug, by=lead)
    said = {"flavor": "training/a100", "gpus": 1, "profile": "a100", **spec}
    until = timezone.now() + timedelta(hours=5)
    with pytest.raises(BadInput, match=words) as refused:
        submit(
            resolve("notebook", said, team=tenancy.team, until=until, reason="A."),
            by=ada,
            now=timezone.now(),
        )

    assert refused.value.field == field


@pytest.mark.parametrize("before", list(State))
def test_the_database_takes_legal_moves_alone(
    tenancy: Tenancy, ada: User, before: State
) -> None:
    facts: dict[State, dict[str, Any]] = {
        State.READY: {"ready_at": timezone.now()},
        State.STOPPING: {"stop_reason": "idle"},
        State.STOPPED: {"stop_reason": "idle", "ready_at": None},
        State.FAILED: {"ready_at": None},
        State.STARTING: {},
    }
    server = NotebookServer.objects.filter(pk=launch(tenancy, ada).pk)
    server.update(state=before, **facts[before])

    for after in set(State) - LEGAL[before] - {before}:
        with (
            pytest.raises(DatabaseError, match="what stops comes up"),
            transaction.atomic(),
        ):
            server.update(state=after, **facts[after])
