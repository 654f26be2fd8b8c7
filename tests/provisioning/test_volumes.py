"""Volumes that were granted: claims on the cluster, room in the quota, and nothing that deletes them."""

import pytest

from accounts.roles import Role
from allocations.ends import sweep as ends
from allocations.models import Allocation
from approvals.fulfilment import actions as fulfilment
from approvals.models import Request
from approvals.requests.actions import submit
from approvals.requests.wanted import resolve
from fleet.models import Cluster
from manual.models import Task
from provisioning.desired.manifests import Manifest, tenancy_objects
from provisioning.desired.spec import MOST_VOLUMES, SpecRefused, TenancySpec, Volume
from tests import factories
from tests.provisioning.conftest import Place
from tests.provisioning.specs import SAMPLE, sample
from tests.scene import DAY
from web.refusals import Conflict

CLAIM = ("v1", "PersistentVolumeClaim")
CORPUS = Volume(name="corpus", gib=2_048, access="ReadWriteMany")
SCRATCH = Volume(name="scratch", gib=10, access="ReadWriteOnce")
REASON = "Images for the detector."


def found(spec: TenancySpec, kind: str) -> dict[str, Manifest]:
    """The manifests of a kind, by name."""
    return {
        one["metadata"]["name"]: one
        for one in tenancy_objects(spec)
        if one["kind"] == kind
    }


def test_each_volume_has_a_claim_of_its_size_and_class() -> None:
    claims = found(sample(volumes=(CORPUS, SCRATCH)), "PersistentVolumeClaim")
    assert set(claims) == {"datasets", "volume-corpus", "volume-scratch"}
    assert claims["volume-corpus"]["spec"] == {
        "accessModes": ["ReadWriteMany"],
        "resources": {"requests": {"storage": "2Ti"}},
        "storageClassName": SAMPLE.storage_class,
    }
    # The class for shared disks need not make disks of one node.
    assert "storageClassName" not in claims["volume-scratch"]["spec"]
    marks = claims["volume-corpus"]["metadata"]["annotations"]
    assert marks["kustomize.toolkit.fluxcd.io/prune"] == "disabled"


def test_the_quota_has_room_for_them_and_for_what_is_not_taken_down_yet() -> None:
    hard = found(SAMPLE, "ResourceQuota")["team-quota"]["spec"]["hard"]
    assert (hard["persistentvolumeclaims"], hard["requests.storage"]) == ("20", "2Ti")
    hard = found(sample(volumes=(CORPUS,), ended_volumes=(SCRATCH,)), "ResourceQuota")[
        "team-quota"
    ]["spec"]["hard"]
    assert (hard["persistentvolumeclaims"], hard["requests.storage"]) == (
        "22",
        "4106Gi",
    )
    [limits] = found(sample(volumes=(CORPUS,)), "LimitRange").values()
    assert {"type": "PersistentVolumeClaim", "max": {"storage": "2Ti"}} in limits[
        "spec"
    ]["limits"]


@pytest.mark.parametrize(
    "wrong",
    [
        {"name": "../x"},
        {"name": "Corpus"},
        {"name": "x" * 41},
        {"gib": 0},
        {"gib": True},
        {"gib": 65_537},
        {"access": "ReadWriteOncePod"},
        {"size": 3},
    ],
)
def test_a_stored_volume_that_is_none_is_refused(wrong: dict[str, object]) -> None:
    stored = sample(volumes=(CORPUS,)).to_json()
    with pytest.raises(SpecRefused):
        TenancySpec.from_json({**stored, "volumes": [stored["volumes"][0] | wrong]})
    with pytest.raises(SpecRefused):
        TenancySpec.from_json({**stored, "volumes": "corpus"})


def test_a_spec_from_before_there_were_volumes_has_none() -> None:
    stored = sample(volumes=(CORPUS,)).to_json()
    assert TenancySpec.from_json(stored).volumes == (CORPUS,)
    del stored["volumes"], stored["ended_volumes"]
    assert TenancySpec.from_json(stored) == SAMPLE


def ask(place: Place, name: str = "corpus", gib: int = 100) -> Request:
    """A volume that the policy approves at once."""
    said = {"cluster": place.cluster.name, "name": name, "gib": gib}
    wanted = resolve(
        "volume",
        said,
        team=place.tenancy.team,
        until=place.time + 3 * DAY,
        reason=REASON,
    )
    return submit(wanted, by=place.ada, now=place.time)


@pytest.fixture
def ready(place: Place) -> Place:
    """A place that is true on its cluster."""
    factories.allocation(place.ada, place.tenancy, place.a100)
    place.later(seconds=1)
    assert place.reconcile()
    return place


def test_a_volume_is_made_within_one_pass_and_asks_nobody(ready: Place) -> None:
    asked = ask(ready)
    ready.later(seconds=1)
    # The claim, and the quota that makes room for it.
    assert ready.reconcile() == 2
    claim = ready.kubernetes.get(CLAIM, "volume-corpus", ready.tenancy.namespace)
    assert claim is not None
    assert claim["spec"]["resources"]["requests"]["storage"] == "100Gi"
    assert ready.row.is_settled
    assert not Task.objects.exists()
    held = Allocation.objects.get(hold=asked.hold)
    assert (held.provisioner, held.charged_from, held.tenancy) == (
        "kubernetes",
        held.starts_at,
        ready.tenancy,
    )
    ready.later(minutes=2)
    assert ready.reconcile() == 0


@pytest.mark.slow
def test_a_second_volume_of_one_name_is_refused_and_another_name_is_not(
    ready: Place,
) -> None:
    ask(ready)
    with pytest.raises(
        Conflict, match="There is a volume corpus in qm-vision"
    ) as refused:
        ask(ready, gib=7)
    assert (refused.value.code, refused.value.field) == ("name_taken", "name")
    ask(ready, "corpus-2")
    assert Allocation.objects.live().filter(offering="volume").count() == 2


@pytest.mark.slow
def test_a_namespace_has_as_many_volumes_as_its_desired_state_takes(
    ready: Place,
) -> None:
    held = Allocation.objects.get(hold=ask(ready).hold)
    factories.more_volumes(held, MOST_VOLUMES - 2)
    ask(ready, "the-last-one")
    with pytest.raises(Conflict, match="Let one of them go first") as refused:
        ask(ready, "one-too-many")
    assert (refused.value.code, refused.value.field) == ("too_many_volumes", "name")


@pytest.mark.slow
def test_one_that_has_ended_is_had_again_with_what_is_in_it_and_nobody_takes_it_down(
    ready: Place,
) -> None:
    asked = ask(ready)
    ready.later(seconds=1)
    ready.reconcile()
    ready.time = asked.until
    ends.sweep(ready.time)
    ready.later(seconds=1)
    ready.reconcile()
    with pytest.raises(Conflict, match="not taken down yet") as refused:
        ask(ready, gib=120)
    assert (refused.value.code, refused.value.field) == ("still_there", "name")
    ask(ready)
    assert Task.objects.get().state == "dropped"
    ready.later(seconds=1)
    ready.reconcile()
    claim = ready.kubernetes.get(CLAIM, "volume-corpus", ready.tenancy.namespace)
    assert claim is not None
    assert claim["spec"]["resources"]["requests"]["storage"] == "100Gi"
    quota = (
        ready.kubernetes.get(
            ("v1", "ResourceQuota"), "team-quota", ready.tenancy.namespace
        )
        or {}
    )
    assert quota["spec"]["hard"]["persistentvolumeclaims"] == "21"


@pytest.mark.slow
def test_where_the_cluster_follows_git_the_file_goes_before_the_claim(
    ready: Place,
) -> None:
    asked = ask(ready)
    ready.later(seconds=1)
    ready.reconcile()
    Cluster.objects.filter(pk=ready.tenancy.cluster_id).update(
        delivery="git", git_url="/fleet.git"
    )
    ends.sweep(asked.until)
    namespace = ready.tenancy.namespace
    file = f"clusters/training/tenancies/{namespace}/persistentvolumeclaim-volume-corpus.json"
    first, then = [line for line in Task.objects.get().lines if "to delete" in line[0]]
    assert first == (
        "File to delete first",
        f"{file}, with its line in kustomization.yaml beside it",
    )
    assert then == ("Claim to delete", f"volume-corpus in {namespace}")


@pytest.mark.slow
def test_at_its_end_a_person_takes_it_down_and_nothing_deletes_it(ready: Place) -> None:
    asked = ask(ready)
    ready.later(seconds=1)
    ready.reconcile()
    ready.time = asked.until
    assert ends.sweep(ready.time) == 2
    ready.later(seconds=1)
    ready.reconcile()
    namespace = ready.tenancy.namespace
    assert ready.kubernetes.get(CLAIM, "volume-corpus", namespace) is not None
    task = Task.objects.get()
    assert (task.kind, task.instruction) == (
        "take_down",
        "Its time is over: ask Ada Okafor, then take the volume corpus in Training down.",
    )
    assert (
        "Claim to delete",
        f"volume-corpus in {ready.tenancy.namespace}",
    ) in task.lines
    quota = ready.kubernetes.get(("v1", "ResourceQuota"), "team-quota", namespace) or {}
    assert quota["spec"]["hard"]["persistentvolumeclaims"] == "21"

    priya = factories.person("Priya Raman", Role.PLATFORM_LEAD)
    ready.kubernetes.delete(CLAIM, "volume-corpus", namespace)
    fulfilment.finish(task.pk, by=priya, note="Deleted.", now=ready.time)
    ready.later(seconds=1)
    ready.reconcile()
    quota = ready.kubernetes.get(("v1", "ResourceQuota"), "team-quota", namespace) or {}
    assert quota["spec"]["hard"]["persistentvolumeclaims"] == "20"
    assert ready.kubernetes.get(CLAIM, "volume-corpus", namespace) is None
    # The name is free again.
    ask(ready)
