"""A team leaves: asked, confirmed, drained, kept, restored or gone, and on board again."""

import pytest

from accounts.models import User
from accounts.tokens.actions import create_team_token
from allocations.ends import sweep as ends
from allocations.models import Allocation, Budget
from allocations.provisioners import state_of
from allocations.schedule import State as Stand
from approvals.models import Request
from approvals.requests.actions import submit
from approvals.requests.wanted import resolve
from approvals.states import State
from audit.models import Event
from fleet.models import Cluster
from manual.models import Task
from notices.models import Notice
from offboarding import actions
from offboarding import preview as previews
from offboarding.models import Departure, DeparturePlace
from offboarding.sweep import advance, delete_due, sweep
from provisioning.models import Tenancy
from provisioning.stages import Stage
from tests import factories
from tests.approvals import shop
from tests.calling import Caller
from tests.onboarding.parting import DAY, Parting, on_paper, parting
from tests.provisioning.conftest import Place
from tests.scene import Scene, books, ledger
from web.refusals import Conflict, NoRight


@pytest.fixture
def vision(place: Place) -> Parting:
    """The team on its cluster."""
    return parting(place)


def kinds(departure: Departure) -> list[str]:
    return list(
        Event.objects.about("departure", departure.pk)
        .order_by("seq")
        .values_list("kind", flat=True)
    )


def told(user: User) -> list[str]:
    rows = Notice.objects.filter(person=user, kind="team_leaves").order_by("pk")
    return [row.message["title"] for row in rows]


def come_back(vision: Parting) -> Tenancy:
    """The team asks for a namespace in the catalogue, as any team that is not on the cluster."""
    spec = {"cluster": "training", "environment": "dev", "project": "main"}
    until = vision.place.time + 5 * DAY
    wanted = resolve(
        "namespace",
        spec,
        team=vision.place.tenancy.team,
        until=until,
        reason="We are back.",
    )
    request = submit(wanted, by=vision.ada, now=vision.place.time)
    assert request.state == State.APPROVED
    assert request.tenancy is not None
    return Tenancy.objects.get(pk=request.tenancy.pk)


@pytest.mark.slow
def test_the_whole_life_asked_drained_kept_gone_and_on_board_again(
    vision: Parting,
) -> None:
    place, flavor = vision.place, vision.place.a100
    factories.request(
        vision.ada, vision.tenancy, flavor, gpus=1, days=3, now=place.time
    )
    waiting = factories.request(
        vision.ada, vision.tenancy, flavor, gpus=4, days=3, now=place.time
    )
    assert waiting.state == State.WAITING
    departure = vision.go(leaves_at=place.time + 2 * DAY, hold=True)
    assert kinds(departure) == ["departure.asked", "departure.confirmed"]
    vision.pass_by(hours=1)
    assert Request.objects.get(pk=waiting.pk).state == State.WITHDRAWN
    assert (vision.tenancy.stage, vision.tenancy.stop) == (Stage.LEAVING, "Hold")
    assert Allocation.objects.live().filter(tenancy=place.tenancy).count() == 1
    with pytest.raises(Conflict, match="leaves Training"):
        factories.request(vision.ada, vision.tenancy, flavor, now=place.time)
    vision.pass_by(days=2)
    assert vision.tenancy.stage == Stage.RETAINED
    assert not Allocation.objects.live().filter(tenancy=place.tenancy).exists()
    flavor.refresh_from_db()
    assert flavor.allocated == 0
    assert vision.tenancy.retained_until == departure.leaves_at + 30 * DAY
    vision.pass_by(days=29)
    assert vision.tenancy.stage == Stage.RETAINED
    vision.pass_by(days=1)
    done = vision.until_gone(departure)
    assert (done.end, vision.tenancy.stage) == ("gone", Stage.GONE)
    assert kinds(departure)[-1] == "departure.done"
    assert place.kubernetes.get(("v1", "Namespace"), place.tenancy.namespace) is None
    again = come_back(vision)
    assert (again.namespace, again.pk != place.tenancy.pk) == (
        place.tenancy.namespace,
        True,
    )
    place.tenancy = again
    place.reconcile()
    assert vision.tenancy.is_settled
    factories.request(vision.ada, again, flavor, now=place.time)
    assert told(vision.ada)[-1] == "Vision has left Training"


@pytest.mark.slow
def test_it_is_kept_once_work_has_stopped_on_the_cluster_and_not_before(
    vision: Parting,
) -> None:
    departure = vision.go()

    def shown() -> tuple[str, str]:
        found = Caller(vision.ada).get(f"departures/{departure.pk}/").json()
        return found["state"], found["steps"][2]["title"]

    # Its date has come: first in the database, then on the cluster.
    assert shown() == ("leaving", "Work is being stopped")
    advance(departure.pk, now=vision.place.time)
    assert vision.tenancy.stage == Stage.RETAINED
    assert shown() == ("leaving", "Work is being stopped")
    vision.place.reconcile()
    assert shown() == ("retained", "Work stops")
    # A cluster that does not answer afterwards takes nothing of that back.
    Tenancy.objects.filter(pk=vision.tenancy.pk).update(is_true=False)
    assert shown() == ("retained", "Work stops")


def test_of_a_cluster_that_only_follows_git_nothing_is_read(vision: Parting) -> None:
    departure = vision.ask()
    Cluster.objects.update(
        delivery=Cluster.Delivery.GIT,
        kubeconfig="",
        git_url="https://git.example/c.git",
    )
    [found] = previews.look(departure, now=vision.place.now).values()
    assert (found.claims, found.away) == (
        (),
        "Training follows Git, and the portal has no access to it to look.",
    )


@pytest.mark.slow
def test_restored_before_its_end_everything_but_the_gpus_is_back(
    vision: Parting,
) -> None:
    place = vision.place
    factories.request(
        vision.ada, vision.tenancy, place.a100, gpus=1, days=3, now=place.time
    )
    departure = vision.go()
    vision.pass_by(days=1)
    assert vision.tenancy.stage == Stage.RETAINED
    back = actions.restore(departure.pk, by=vision.priya, now=place.time)
    vision.pass_by(seconds=61)
    assert (back.end, vision.tenancy.stage, vision.tenancy.is_protected) == (
        "restored",
        Stage.HERE,
        True,
    )
    assert vision.tenancy.is_settled
    assert vision.tenancy.desired.gpus() == 0
    assert not DeparturePlace.objects.filter(is_open=True).exists()
    vision.pass_by(days=60)
    assert vision.tenancy.stage == Stage.HERE
    factories.request(vision.ada, vision.tenancy, place.a100, now=place.time)
    assert told(vision.ada)[-1] == "Vision is restored"
    with pytest.raises(Conflict, match="nothing to restore"):
        actions.restore(departure.pk, by=vision.priya, now=place.time)


def test_money_of_what_is_given_back_is_free_again(vision: Parting) -> None:
    place = vision.place
    factories.request(
        vision.ada, vision.tenancy, place.a100, gpus=1, days=3, now=place.time
    )
    before = sum(
        row.held_usd for row in Budget.objects.filter(team=vision.tenancy.team)
    )
    vision.go()
    vision.pass_by(seconds=5)
    after = sum(row.held_usd for row in Budget.objects.filter(team=vision.tenancy.team))
    assert (before > 10, after < 1) == (True, True)


def test_doing_it_twice_gives_one_result(vision: Parting) -> None:
    place = vision.place
    factories.request(
        vision.ada, vision.tenancy, place.a100, gpus=1, days=3, now=place.time
    )
    departure = vision.go()
    for _ in range(3):
        advance(departure.pk, now=place.time)
        sweep(now=place.time)
    ended = Allocation.objects.filter(tenancy=place.tenancy, ended_at__isnull=False)
    assert ended.count() == 1
    drained = Event.objects.about("tenancy", place.tenancy.pk).filter(
        kind="tenancy.drained"
    )
    assert drained.count() == 1
    place.a100.refresh_from_db()
    assert place.a100.allocated == 0


def test_killed_between_draining_and_giving_back_the_next_sweep_goes_on(
    vision: Parting, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = vision.place
    factories.request(
        vision.ada, vision.tenancy, place.a100, gpus=1, days=3, now=place.time
    )
    departure = vision.go()

    def killed(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("offboarding.sweep.give_back", killed)
        with pytest.raises(KeyboardInterrupt):
            advance(departure.pk, now=place.time)
    assert vision.tenancy.stage == Stage.RETAINED
    assert Allocation.objects.live().filter(tenancy=place.tenancy).exists()
    sweep(now=place.time)
    assert not Allocation.objects.live().filter(tenancy=place.tenancy).exists()


@pytest.mark.slow
def test_a_cluster_that_is_away_delays_and_nothing_is_lost(vision: Parting) -> None:
    departure = vision.go()
    vision.pass_by(seconds=5)
    vision.place.kubernetes.fail(times=100, status=503)
    vision.pass_by(days=31)
    vision.pass_by(days=1)
    assert vision.tenancy.stage == Stage.REMOVING
    assert Departure.objects.get(pk=departure.pk).ended_at is None
    vision.place.kubernetes.cluster.faults.clear()
    vision.place.later(days=1)
    assert vision.until_gone(departure).end == "gone"


def test_once_deleting_has_begun_nobody_restores(vision: Parting) -> None:
    departure = vision.go()
    vision.pass_by(seconds=5)
    vision.place.later(days=30)
    delete_due(now=vision.place.time)
    with pytest.raises(Conflict, match="Deleting has begun"):
        actions.restore(departure.pk, by=vision.priya, now=vision.place.time)


def test_too_many_at_once_wait_for_a_person(
    vision: Parting, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("offboarding.plan.LEAST_BRAKE", 0)
    departure = vision.go()
    vision.pass_by(seconds=5)
    vision.place.later(days=31)
    with pytest.raises(NoRight):
        actions.agree(departure.pk, by=vision.ada, now=vision.place.time)
    sweep(now=vision.place.time)
    sweep(now=vision.place.time)
    assert (vision.tenancy.stage, Departure.objects.get().is_held_back) == (
        Stage.RETAINED,
        True,
    )
    assert Event.objects.filter(kind="departure.braked").count() == 1
    told = Notice.objects.filter(
        kind="team_leaves", message__title="Deleting has stopped: 1 team"
    )
    assert {notice.person for notice in told} == {vision.priya, vision.marcus}


def test_what_was_held_back_goes_only_when_a_person_agrees_however_few_are_left(
    vision: Parting, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("offboarding.plan.LEAST_BRAKE", 0)
    departure = vision.go()
    vision.pass_by(seconds=5)
    vision.place.later(days=31)
    sweep(now=vision.place.time)
    monkeypatch.setattr("offboarding.plan.LEAST_BRAKE", 10)
    sweep(now=vision.place.time)
    assert vision.tenancy.stage == Stage.RETAINED
    actions.agree(departure.pk, by=vision.priya, now=vision.place.time)
    sweep(now=vision.place.time)
    assert vision.tenancy.stage == Stage.REMOVING


def test_what_was_held_back_can_still_be_restored(
    vision: Parting, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("offboarding.plan.LEAST_BRAKE", 0)
    departure = vision.go()
    vision.pass_by(seconds=5)
    vision.place.later(days=31)
    sweep(now=vision.place.time)
    actions.restore(departure.pk, by=vision.ada, now=vision.place.time)
    sweep(now=vision.place.time)
    assert vision.tenancy.stage == Stage.HERE


@pytest.mark.slow
def test_only_what_was_confirmed_is_ever_deleted(vision: Parting) -> None:
    other = factories.tenancy(factories.team("Speech"), vision.place.cluster)
    departure = vision.go(is_whole=True)
    vision.pass_by(minutes=1)
    vision.pass_by(days=31)
    vision.until_gone(departure)
    assert Tenancy.objects.get(pk=other.pk).stage == Stage.HERE


def volume_of(scene: Scene, *, days: float) -> Allocation:
    """A volume that the scene's team holds for some days."""
    asked = shop.granted(scene, "volume", until=shop.later(days=days))
    assert asked.allocation is not None
    return asked.allocation


def to_take_down() -> list[str]:
    rows = Task.objects.unfinished().filter(kind=Task.Kind.TAKE_DOWN)
    return [task.title for task in rows]


def sweep_after(vision: Parting, **span: float) -> None:
    """Some time passes; then what is over ends, and departures go on."""
    vision.place.later(**span)
    ends.sweep(vision.place.time)
    sweep(now=vision.place.time)


def test_a_restored_team_has_its_volume_and_nobody_is_asked_to_delete_it(
    scene: Scene,
) -> None:
    volume, vision = volume_of(scene, days=20), on_paper(scene)
    departure = vision.go()
    sweep_after(vision, minutes=1)
    assert vision.tenancy.stage == Stage.RETAINED
    actions.restore(departure.pk, by=scene.priya, now=vision.place.time)
    sweep_after(vision, hours=1)
    volume.refresh_from_db()
    assert (volume.ended_at, to_take_down()) == (None, [])
    assert [one.name for one in vision.tenancy.desired.volumes] == ["corpus"]


def test_a_volume_of_a_team_that_left_is_paid_until_its_place_is_deleted(
    scene: Scene,
) -> None:
    volume, vision = volume_of(scene, days=60), on_paper(scene)
    in_all = scene.held_usd()
    vision.go()
    sweep_after(vision, minutes=1)
    vision.stopped()
    sweep_after(vision, days=29)
    volume.refresh_from_db()
    assert (volume.ended_at, scene.held_usd()) == (None, in_all)
    sweep_after(vision, days=1)
    assert vision.tenancy.stage == Stage.REMOVING
    volume.refresh_from_db()
    assert (volume.ended_at, volume.end_reason) == (vision.place.time, "returned")
    # The namespace is deleted with everything in it: nobody has to.
    assert to_take_down() == []
    assert volume.usd_so_far(vision.place.time) < in_all
    assert scene.held_usd() == sum(books(scene.team).values()) < in_all
    assert books(scene.team) == ledger(scene.team)


def test_a_volume_whose_date_comes_while_its_place_is_kept_ends_when_that_is_restored(
    scene: Scene,
) -> None:
    volume, vision = volume_of(scene, days=3), on_paper(scene)
    departure = vision.go()
    sweep_after(vision, minutes=1)
    sweep_after(vision, days=10)
    # Nobody deletes what can be restored; it costs nothing any more.
    assert to_take_down() == []
    stored = Allocation.objects.described().get(pk=volume.pk)
    assert state_of(stored, now=vision.place.time) is Stand.ENDED
    assert stored.usd_so_far(vision.place.time) == stored.usd_in_all
    actions.restore(departure.pk, by=scene.priya, now=vision.place.time)
    sweep_after(vision, minutes=1)
    volume.refresh_from_db()
    assert (volume.ended_at, len(to_take_down())) == (volume.until, 1)


def test_what_was_to_be_taken_down_goes_with_its_place(scene: Scene) -> None:
    volume_of(scene, days=3)
    vision = on_paper(scene)
    vision.go(leaves_at=vision.place.time + 5 * DAY)
    sweep_after(vision, days=4)
    assert len(to_take_down()) == 1
    sweep_after(vision, days=1)
    assert len(to_take_down()) == 1
    vision.stopped()
    sweep_after(vision, days=31)
    generation = vision.tenancy.generation
    assert (vision.tenancy.stage, to_take_down()) == (Stage.REMOVING, [])
    sweep_after(vision, minutes=1)
    assert vision.tenancy.generation == generation


def test_a_volume_of_a_place_that_went_before_the_next_sweep_ends_all_the_same(
    scene: Scene,
) -> None:
    volume, vision = volume_of(scene, days=60), on_paper(scene)
    departure = vision.go()
    sweep_after(vision, minutes=1)
    vision.stopped()
    vision.place.later(days=31)
    delete_due(now=vision.place.time)
    Tenancy.objects.filter(pk=scene.tenancy.pk).update(
        stage=Stage.GONE, gone_at=vision.place.time
    )
    sweep_after(vision, minutes=1)
    volume.refresh_from_db()
    assert volume.ended_at == vision.place.time
    assert (Departure.objects.get(pk=departure.pk).end, to_take_down()) == ("gone", [])


def test_the_preview_tells_what_ends_with_work_from_what_is_kept(scene: Scene) -> None:
    volume, vision = volume_of(scene, days=20), on_paper(scene)
    model = shop.granted(scene, "openai", until=shop.later(days=20))
    departure = vision.ask(is_whole=True)
    shown = previews.preview(previews.of(departure), {}, now=vision.place.time)
    assert [row.pk for row in shown.kept] == [volume.hold.request_id]
    assert [row.pk for row in shown.ends] == [model.pk]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("is_whole", "stays", "end"),
    [
        pytest.param(True, False, True, id="the platform"),
        pytest.param(False, False, True, id="its last cluster"),
        pytest.param(False, True, False, id="one of two clusters"),
    ],
)
def test_who_acts_as_its_pipelines_ends_with_the_last_place_of_the_team(
    scene: Scene, is_whole: bool, stays: bool, end: bool
) -> None:
    vision = on_paper(scene)
    if stays:
        factories.tenancy(scene.team, factories.cluster("elsewhere"))
    token, _ = create_team_token(
        team=scene.team,
        name="nightly",
        scope="run",
        days=300,
        by=scene.ada,
        now=vision.place.time,
    )
    identity = factories.identity(scene.team, scene.ada)
    departure = vision.go(is_whole=is_whole)
    shown = previews.preview(previews.of(departure), {}, now=vision.place.time)
    assert (shown.team_tokens, shown.team_identities) == ((1, 1) if end else (0, 0))
    sweep_after(vision, minutes=1)
    vision.stopped()
    vision.place.later(days=31)
    delete_due(now=vision.place.time)
    Tenancy.objects.filter(pk=scene.tenancy.pk).update(
        stage=Stage.GONE, gone_at=vision.place.time
    )
    sweep_after(vision, minutes=1)
    assert Departure.objects.get(pk=departure.pk).end == "gone"
    token.refresh_from_db()
    identity.refresh_from_db()
    ended = vision.place.time if end else None
    assert (token.revoked_at, identity.removed_at) == (ended, ended)
