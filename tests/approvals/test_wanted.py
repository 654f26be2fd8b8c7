"""What each offering's spec becomes: looked up, priced, and refused at the field that is wrong."""

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pytest

from approvals.requests.actions import judge
from approvals.requests.wanted import BadSpec, Wanted, resolve
from catalogue.models import OfferingSetting
from catalogue.offerings import OFFERINGS
from fleet.models import Cluster, Flavor
from policy.rules import Arrival
from tests import factories
from tests.approvals.offerings import SPECS, another_cluster
from tests.scene import DAY, NOW, Scene
from web.refusals import BadInput, Conflict, Refused


@pytest.fixture
def places(scene: Scene) -> Scene:
    """The scene, and a cluster where its team is not yet."""
    another_cluster()
    return scene


def wanted(scene: Scene, key: str, **changed: Any) -> Wanted:
    said = {
        name: value
        for name, value in (SPECS[key] | changed).items()
        if value is not None
    }
    return resolve(key, said, team=scene.team, until=NOW + DAY, reason="For a test.")


def refusal(scene: Scene, key: str, **changed: Any) -> Refused:
    with pytest.raises(Refused) as refused:
        wanted(scene, key, **changed)
    return refused.value


@dataclass(frozen=True)
class Becomes:
    """Units, GPUs, USD an hour of all of it, and where it is."""

    count: int
    gpus: int
    usd_per_hour: str
    name: str
    environment: str


BECOMES: Mapping[str, Becomes] = {
    "gpus": Becomes(2, 2, "2", "2 × A100", "dev"),
    "notebook": Becomes(1, 1, "1", "Notebook with 1 × A100", "dev"),
    "volume": Becomes(500, 0, "0.10959", "500 GiB volume corpus", "dev"),
    "namespace": Becomes(1, 0, "0", "Test namespace for detector", "test"),
    "training": Becomes(16, 16, "16", "16 × A100", "dev"),
    "endpoint": Becomes(
        3, 6, "6", "Endpoint of 3 × 2 A100 for org/llama-3.1-8b", "production"
    ),
    "openai": Becomes(30, 0, "18", "gpt-4o with 30k tokens a minute", ""),
    "reservation": Becomes(2, 8, "29.384", "2 × Standard_NC96ads_A100_v4 reserved", ""),
    "cluster": Becomes(4, 4, "14.692", "Cluster of 4 × Standard_NC24ads_A100_v4", ""),
}


def test_every_offering_is_looked_at_here() -> None:
    assert set(SPECS) == set(BECOMES) == set(OFFERINGS)


@pytest.mark.parametrize("key", SPECS)
def test_a_good_spec_is_looked_up_and_priced(places: Scene, key: str) -> None:
    found, becomes = wanted(places, key), BECOMES[key]
    ask = found.ask()
    assert (found.count, found.gpus, ask.gpus, found.name) == (
        becomes.count,
        becomes.gpus,
        becomes.gpus,
        becomes.name,
    )
    assert (ask.usd_per_hour, ask.environment) == (
        Decimal(becomes.usd_per_hour),
        becomes.environment,
    )
    assert ask.decided_by_people == (OFFERINGS[key].gate == "approval")
    assert (found.flavor is not None) == OFFERINGS[key].on_cluster
    assert (found.tenancy is not None) == (
        key not in {"namespace", "openai", "reservation", "cluster"}
    )
    assert found.spec.model_dump(mode="json").items() >= SPECS[key].items()


WRONG: list[tuple[str, str, Any, str]] = [
    ("gpus", "gpus", 0, "invalid"),
    ("gpus", "gpus", "2", "invalid"),
    ("gpus", "gpus", True, "invalid"),
    ("gpus", "gpus", None, "required"),
    ("gpus", "colour", "red", "unknown_field"),
    ("gpus", "purpose", "mining", "invalid"),
    ("gpus", "flavor", "a100", "invalid"),
    ("notebook", "gpus", 9, "invalid"),
    ("notebook", "profile", "../etc", "invalid"),
    ("volume", "gib", 65_537, "invalid"),
    ("volume", "name", "Corpus", "invalid"),
    ("volume", "access", "ReadOnlyMany", "invalid"),
    ("namespace", "environment", "staging", "invalid"),
    ("namespace", "project", "../etc", "invalid"),
    ("training", "gpus", 7, "invalid"),
    ("endpoint", "gpus_per_replica", 9, "invalid"),
    ("endpoint", "model", "", "invalid"),
    ("endpoint", "replicas", 1.0, "invalid"),
    ("openai", "thousand_tokens_per_minute", -1, "invalid"),
    ("openai", "region", "<b>", "invalid"),
    ("reservation", "vm_size", "Basic_A1", "invalid"),
    ("reservation", "instances", 2**70, "invalid"),
    ("cluster", "nodes", 0, "invalid"),
    ("cluster", "purpose", "fun", "invalid"),
]


@pytest.mark.parametrize(("key", "field", "value", "code"), WRONG)
def test_a_wrong_value_is_refused_at_its_field(
    places: Scene, key: str, field: str, value: Any, code: str
) -> None:
    refused = refusal(places, key, **{field: value})
    assert (type(refused), refused.field, refused.code) == (BadSpec, field, code)


@pytest.mark.parametrize(
    ("key", "field", "value"),
    [
        ("openai", "model", "gpt-99"),
        ("reservation", "vm_size", "Standard_ND1_v9"),
        ("cluster", "vm_size", "Standard_ND1_v9"),
    ],
)
def test_what_has_no_price_is_not_taken(
    places: Scene, key: str, field: str, value: str
) -> None:
    refused = refusal(places, key, **{field: value})
    assert (refused.code, refused.field) == ("no_price", field)
    assert value in refused.message


def test_a_price_of_this_installation_goes_before_the_catalogues(places: Scene) -> None:
    own = {"Standard_NC96ads_A100_v4": "50", "Standard_ND1_v9": "1.25"}
    OfferingSetting.objects.create(
        key="reservation", gate="self_service", position=0, prices=own
    )
    found = wanted(places, "reservation")
    assert (found.ask().usd_per_hour, found.ask().decided_by_people) == (
        Decimal(100),
        False,
    )
    assert wanted(
        places, "reservation", vm_size="Standard_ND1_v9"
    ).size.usd_per_hour_each == Decimal("1.25")


def test_a_kind_of_gpu_that_is_not_there_and_one_elsewhere_look_the_same(
    places: Scene,
) -> None:
    elsewhere = factories.flavor(Cluster.objects.get(name="inference"), "l4")
    for key in ("gpus", "notebook", "training", "endpoint"):
        said = [
            refusal(places, key, flavor=f"{cluster}/{name}")
            for cluster, name in (
                ("inference", elsewhere.name),
                ("training", "h999"),
                ("nowhere", "a100"),
            )
        ]
        assert {(each.code, each.field, each.message) for each in said} == {
            (
                "not_there",
                "flavor",
                "The team has no place on a cluster with this kind of GPU.",
            )
        }


def test_a_volume_goes_where_the_team_is(places: Scene) -> None:
    refused = refusal(places, "volume", cluster="inference")
    assert (refused.code, refused.field) == ("not_there", "cluster")
    assert refusal(places, "volume", cluster="nowhere").code == "no_such_cluster"


def test_a_namespace_is_for_an_environment_that_the_project_has_not_there(
    places: Scene,
) -> None:
    assert (
        wanted(places, "namespace", cluster="training", project="main").tenancy is None
    )
    refused = refusal(
        places, "namespace", cluster="training", project="main", environment="dev"
    )
    assert (type(refused), refused.code, refused.field) == (
        Conflict,
        "already_there",
        "cluster",
    )
    Cluster.objects.filter(name="inference").update(enabled=False)
    assert refusal(places, "namespace").code == "no_such_cluster"


def test_an_offering_that_nobody_knows_is_refused(places: Scene) -> None:
    with pytest.raises(BadInput) as refused:
        resolve("lunch", {}, team=places.team, until=NOW + DAY)
    assert (refused.value.code, refused.value.field) == ("unknown_offering", "offering")


def test_fewer_of_it_costs_less_and_says_so_in_its_spec(places: Scene) -> None:
    for key, spec in SPECS.items():
        whole = wanted(places, key)
        less = whole.of(1)
        assert (less.count, less.gpus) == (1, whole.size.gpus_each)
        counted = whole.spec.counted
        assert (
            less.spec.model_dump(mode="json").items()
            >= (spec | ({counted: 1} if counted else {})).items()
        )


def test_a_flavor_has_the_price_of_now(places: Scene) -> None:
    Flavor.objects.update(price_per_gpu_hour=Decimal("3.67"))
    assert wanted(places, "gpus").ask().usd_per_hour == Decimal("7.34")


def test_a_training_is_never_made_smaller_than_it_may_be(places: Scene) -> None:
    assert [
        OFFERINGS[key].spec.least() for key in ("training", "gpus", "namespace")
    ] == [8, 1, 1]
    assert wanted(places, "training").ask().least == 8


def test_what_goes_to_a_cluster_that_does_not_answer_comes_when_it_does(
    places: Scene,
) -> None:
    Cluster.objects.update(reachable=False)
    asked = wanted(places, "gpus")
    assert asked.ask().arrival is Arrival.WHEN_IT_ANSWERS
    answer = judge(asked, person=places.ada, now=NOW).answer
    assert answer.sentence == (
        "Automatic. The cluster does not answer now: yours, and charged, once it does."
    )


@pytest.mark.parametrize(
    ("delivery", "way", "arrival"),
    [
        (Cluster.Delivery.APPLY, Cluster.GitWay.DIRECT, Arrival.WRITTEN),
        (Cluster.Delivery.GIT, Cluster.GitWay.DIRECT, Arrival.COMMITTED),
        (Cluster.Delivery.GIT, Cluster.GitWay.PULL_REQUEST, Arrival.PROPOSED),
    ],
)
def test_how_it_gets_to_its_cluster_is_said_as_the_cluster_is_delivered_to(
    places: Scene, delivery: Cluster.Delivery, way: Cluster.GitWay, arrival: Arrival
) -> None:
    Cluster.objects.update(
        delivery=delivery, git_way=way, git_url="https://git.example/clusters.git"
    )
    assert wanted(places, "gpus").ask().arrival is arrival
