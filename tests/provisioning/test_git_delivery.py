"""A cluster that follows a repository: what is committed, when nothing is, and what of it is known to be true."""

import json
import threading
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from django.conf import settings
from django.utils import timezone

from accounts.models import User
from audit.models import Event
from connectors.errors import TemporaryError
from connectors.git import Repository, Signed
from connectors.git_address import Remote
from connectors.kubernetes import rendered
from fleet.models import Cluster, Flavor
from provisioning import reconcile
from provisioning.clusters import observe as look
from provisioning.delivery import client_for
from provisioning.desired.manifests import tenancy_objects
from provisioning.drift import cluster_sweep
from provisioning.git import remotes as git_remotes
from provisioning.git.commits import ClusterCommit, TenancyCommit, newest_of
from provisioning.git.repository import file_name, tenancy_folder
from provisioning.models import Tenancy
from provisioning.stages import Stage
from reconciling import lease
from tests import factories
from tests.provisioning.conftest import Place
from tests.remotes import Bare, bare


@dataclass
class Followed:
    """A team's place on a cluster without access, whose repository is bare and near."""

    theirs: Bare
    cluster: Cluster
    a100: Flavor
    ada: User
    tenancy: Tenancy
    time: datetime

    def now(self) -> datetime:
        return self.time

    def reconcile(self) -> int | None:
        self.time += timedelta(seconds=61)
        return reconcile.reconcile(self.tenancy.pk, now=self.now)

    @property
    def row(self) -> Tenancy:
        return Tenancy.objects.get(pk=self.tenancy.pk)

    @property
    def folder(self) -> str:
        return tenancy_folder(self.cluster.name, self.tenancy.namespace)

    @property
    def quota(self) -> str:
        return f"{self.folder}/resourcequota-team-quota.json"


@pytest.fixture
def followed(db: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Followed:
    """Not looked at yet, on a cluster in mode git."""
    monkeypatch.setattr(settings.ENV, "git_local_dir", tmp_path)
    theirs = bare(tmp_path)
    cluster = factories.cluster("inference", delivery="git", git_url=str(theirs.path))
    a100 = factories.flavor(cluster, "a100")
    ada = factories.person("Ada\nOkafor")
    team = factories.team("Vision", by=ada)
    factories.join(team, ada)
    return Followed(
        theirs, cluster, a100, ada, factories.tenancy(team, cluster), timezone.now()
    )


@pytest.fixture
def observed(place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    """A tenancy of a cluster that can be looked at, delivered by Git."""
    monkeypatch.setattr(settings.ENV, "git_local_dir", tmp_path)
    url = str(bare(tmp_path, "observed.git").path)
    Cluster.objects.filter(pk=place.cluster.pk).update(delivery="git", git_url=url)
    return place


def condition(row: Tenancy) -> tuple[str, str]:
    return row.ready["reason"], row.ready["message"]


def test_what_is_committed_is_what_would_be_sent_and_says_what_is_known(
    followed: Followed,
) -> None:
    assert followed.reconcile() == 1
    files, row = followed.theirs.files(), followed.row
    for manifest in tenancy_objects(row.desired):
        assert files[f"{followed.folder}/{file_name(manifest)}"] == rendered(manifest)
    short = followed.theirs.tip()[:7]
    assert condition(row) == (
        "Committed",
        f"Committed {short}, not observed: the portal has no access to this cluster.",
    )
    assert (
        row.is_settled,
        row.ready["status"],
        {o["state"] for o in row.objects_seen},
    ) == (
        True,
        "Unknown",
        {"committed"},
    )
    assert (row.lease_until, row.slot) == (None, None)
    event = Event.objects.about("tenancy", row.pk).latest("seq")
    assert (event.kind, event.details["commit"]) == (
        "tenancy.committed",
        followed.theirs.tip(),
    )


def test_nothing_changed_is_no_commit_and_no_event(followed: Followed) -> None:
    followed.reconcile()
    tip, seq = followed.theirs.tip(), Event.objects.latest("seq").seq
    assert followed.reconcile() == 0
    assert (followed.theirs.tip(), Event.objects.latest("seq").seq) == (tip, seq)
    assert TenancyCommit.objects.get(tenancy=followed.tenancy).sha == tip


def test_a_change_is_one_commit_that_names_its_request_and_its_person(
    followed: Followed,
) -> None:
    followed.reconcile()
    asked = factories.request(followed.ada, followed.row, followed.a100, gpus=2)
    assert followed.reconcile() == 1
    message = followed.theirs.log()[0].splitlines()
    assert len(followed.theirs.log()) == 2
    assert message[0] == f"inference: {followed.tenancy.namespace}, generation 2"
    assert f"Request: {asked.reference}" in message
    assert "What: 2 × a100 granted" in message
    assert "Asked by: Ada Okafor" in message
    assert followed.theirs.author() == "Quartermaster <quartermaster@localhost>"
    quota = json.loads(followed.theirs.files()[followed.quota])
    assert quota["spec"]["hard"]["requests.nvidia.com/gpu"] == "2"
    assert followed.row.is_settled


def test_what_all_teams_share_is_committed_once_for_the_cluster(
    followed: Followed,
) -> None:
    assert look.look_at(followed.cluster.pk, now=followed.now)
    files = followed.theirs.files()
    assert "base/kustomization.yaml" in files
    assert "clusters/inference/cluster/resourceflavor-a100.json" in files
    tip = followed.theirs.tip()
    assert look.look_at(followed.cluster.pk, now=followed.now)
    assert (followed.theirs.tip(), ClusterCommit.objects.get().sha) == (tip, tip)
    followed.reconcile()
    found = newest_of(followed.cluster)
    assert found is not None
    assert (found.sha, len(followed.theirs.log())) == (followed.theirs.tip(), 2)


def test_a_hand_a_force_push_and_a_bad_merge_are_put_right_and_theirs_is_kept(
    followed: Followed,
) -> None:
    followed.reconcile()
    good = followed.theirs.files()
    broken: list[Callable[[], object]] = [
        lambda: followed.theirs.push(
            {followed.quota: good[followed.quota].replace(b'"pods"', b'"pod"')}
        ),
        lambda: followed.theirs.push({followed.quota: b"<<<<<<< a\n"}),
        lambda: followed.theirs.push(
            {followed.quota: None, f"{followed.folder}/kustomization.yaml": None}
        ),
        lambda: followed.theirs.push({"other.txt": b"theirs"}, anew=True),
    ]
    for breaking in broken:
        breaking()
        assert followed.reconcile() == 1
        found = followed.theirs.files()
        assert {path: found[path] for path in good} == good
        assert followed.row.is_settled
    assert followed.theirs.files()["other.txt"] == b"theirs"


def test_what_is_not_ours_in_our_place_is_refused_and_left(followed: Followed) -> None:
    theirs = {f"{followed.folder}/kustomization.yaml": b"resources: []\n"}
    followed.theirs.push(dict(theirs))
    assert followed.reconcile() == 0
    reason, message = condition(followed.row)
    assert reason == "Refused"
    assert (
        message
        == f"{followed.folder}/kustomization.yaml exists in the repository and is not ours; it was not touched."
    )
    assert followed.theirs.files() == theirs


def test_somebody_faster_makes_it_start_again_on_what_they_left(
    followed: Followed, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, races = Repository.commit, iter(range(3))

    def overtaken(self: Repository, *args: object, **kwargs: object) -> str:
        number = next(races, None)
        if number is not None:
            followed.theirs.push({f"race-{number}.txt": b"x"})
        return real(self, *args, **kwargs)  # type: ignore[arg-type]

    monkeypatch.setattr(Repository, "commit", overtaken)
    assert followed.reconcile() == 1
    assert {"race-0.txt", "race-1.txt", "race-2.txt"} < set(followed.theirs.files())
    assert len(followed.theirs.log()) == 4
    assert followed.row.is_settled


def test_who_is_always_overtaken_says_so_and_comes_again(
    followed: Followed, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = Repository.commit

    def overtaken(self: Repository, *args: object, **kwargs: object) -> str:
        followed.theirs.push({"race.txt": followed.theirs.tip().encode()})
        return real(self, *args, **kwargs)  # type: ignore[arg-type]

    monkeypatch.setattr(Repository, "commit", overtaken)
    assert followed.reconcile() == 0
    assert condition(followed.row)[0] == "WillTryAgain"
    monkeypatch.undo()
    settings.ENV.git_local_dir = followed.theirs.path.parent
    assert followed.reconcile() == 1
    settings.ENV.git_local_dir = None


def test_a_lost_lease_pushes_nothing(
    followed: Followed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lease.Lease, "renew", lambda self, now: False)
    assert followed.reconcile() == 0
    assert followed.theirs.tip() == ""
    assert not TenancyCommit.objects.exists()


def test_a_locked_repository_is_tried_again(followed: Followed) -> None:
    followed.theirs.push({"a.txt": b"1"})
    lock = followed.theirs.path / "refs" / "heads" / "main.lock"
    lock.touch()
    assert followed.reconcile() == 0
    assert condition(followed.row)[0] == "WillTryAgain"
    lock.unlink()
    assert followed.reconcile() == 1


def test_a_host_that_refuses_leaves_what_was_committed_as_it_was_seen(
    followed: Followed,
) -> None:
    assert followed.reconcile() == 1
    committed = followed.row.objects_seen
    factories.request(followed.ada, followed.tenancy, followed.a100, gpus=1)
    lock = followed.theirs.path / "refs" / "heads" / "main.lock"
    lock.touch()
    assert followed.reconcile() == 0
    row = followed.row
    assert condition(row)[0] == "WillTryAgain"
    assert row.objects_seen == committed
    assert {line["state"] for line in committed} == {"committed"}
    lock.unlink()
    assert followed.reconcile() == 1
    assert condition(followed.row)[0] == "Committed"


def test_credentials_that_are_not_there_are_said(followed: Followed) -> None:
    Cluster.objects.update(git_credentials="robot")
    assert followed.reconcile() == 0
    assert condition(followed.row) == (
        "Refused",
        "The Git credentials robot are not there.",
    )
    assert git_remotes.credentials_path("../../etc/passwd").name == "passwd"
    assert (
        git_remotes.credentials_path("../../etc/passwd").parent
        == settings.ENV.git_credentials_dir
    )


def test_one_look_finds_the_tenancies_whose_files_differ(followed: Followed) -> None:
    followed.reconcile()
    followed.time += timedelta(seconds=61)
    assert list(cluster_sweep.sweep(followed.cluster.pk, now=followed.now)) == []
    assert followed.row.last_looked_at == followed.time
    followed.theirs.push({followed.quota: None})
    followed.time += timedelta(seconds=61)
    assert list(cluster_sweep.sweep(followed.cluster.pk, now=followed.now)) == [
        followed.tenancy.pk
    ]


def test_a_team_that_left_is_taken_out_by_name(followed: Followed) -> None:
    followed.reconcile()
    factories.leave(followed.row, to="removing", at=followed.time)
    assert followed.reconcile() == 1
    assert [path for path in followed.theirs.files() if "tenancies" in path] == []
    assert "team left" in followed.theirs.log()[0]
    row = followed.row
    assert row.stage == Stage.GONE
    assert "not observed" in row.ready["message"]


def test_the_cluster_is_asked_and_never_written_to(observed: Place) -> None:
    observed.later(seconds=61)
    assert observed.reconcile() == 1
    reason, message = condition(observed.row)
    assert reason == "WaitingForSync"
    assert "Flux or Argo CD has not made it true yet: Namespace" in message
    assert set(observed.states()) == {"waiting"}
    assert observed.row.explanation.startswith(
        "The commit counts once Flux or Argo CD has applied it."
    )
    assert observed.kubernetes.writes == 0
    for manifest in tenancy_objects(observed.row.desired):
        client_for(observed.cluster).apply(manifest)
    written = observed.kubernetes.writes
    observed.later(seconds=61)
    assert observed.reconcile() == 0
    assert set(observed.states()) == {"true"}
    assert (observed.row.is_settled, condition(observed.row)[0]) == (
        True,
        "AllObjectsTrue",
    )
    assert observed.kubernetes.writes == written


@pytest.mark.slow
def test_several_workers_push_one_repository_and_lose_nothing(
    followed: Followed,
) -> None:
    """Each has a view of its own, as another process would."""
    remote = Remote(str(followed.theirs.path), folder=followed.theirs.path.parent)
    signed = Signed("x", "A <a@example.com>", followed.time)
    moved: list[int] = []

    def work(number: int) -> None:
        view = Repository(remote)
        for turn in range(5):
            while True:
                try:
                    view.commit(
                        view.look("main"),
                        {f"{number}/{turn}.txt": b"x"},
                        signed,
                        branch="main",
                    )
                    break
                except TemporaryError:
                    moved.append(number)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(followed.theirs.files()) == 20
    assert len(followed.theirs.log()) == 20
