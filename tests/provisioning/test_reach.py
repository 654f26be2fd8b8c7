"""What a tenancy's pods can reach: on the cluster, on the page and over the API the same."""

from typing import Any

from django.test import Client

from accounts.models import User
from accounts.roles import Role
from allocations.in_step import keep_in_step
from fleet.egress import EgressRule
from fleet.services import SharedService
from provisioning.manifests import tenancy_objects
from provisioning.reach import ways_in, ways_out
from provisioning.spec import TenancySpec
from tests import factories
from tests.calling import Caller
from tests.provisioning.conftest import Place
from tests.provisioning.specs import SAMPLE, sample

POLICY = ("networking.k8s.io/v1", "NetworkPolicy")
OPENAI = EgressRule(name="openai", cidrs=("10.20.0.5/32",), ports=(443,), inside=True)
INTERNET = EgressRule(name="internet", cidrs=("0.0.0.0/0",), ports=(443, 80))
SERVICE = SharedService(name="mlflow", namespace="mlflow", labels=(("app", "mlflow"),), port=5000)


def test_ways_out_are_a_policy_of_their_own_and_none_without_them() -> None:
    names = [one["metadata"]["name"] for one in tenancy_objects(SAMPLE)]
    assert "allow-outside" not in names
    objects = tenancy_objects(sample(egress=(INTERNET, OPENAI)))
    [policy] = [one for one in objects if one["metadata"]["name"] == "allow-outside"]
    internet, openai = policy["spec"]["egress"]
    assert policy["spec"]["policyTypes"] == ["Egress"]
    assert openai == {
        "to": [{"ipBlock": {"cidr": "10.20.0.5/32"}}],
        "ports": [{"port": 443, "protocol": "TCP"}],
    }
    assert internet["to"][0]["ipBlock"]["cidr"] == "0.0.0.0/0"
    assert "169.254.0.0/16" in internet["to"][0]["ipBlock"]["except"]


def test_a_spec_comes_back_with_its_ways_out() -> None:
    one = sample(egress=(INTERNET, OPENAI))
    assert TenancySpec.from_json(one.to_json()) == one


def test_the_words_name_every_policy_that_lets_something_through() -> None:
    spec = sample(egress=(INTERNET, OPENAI), services=(SERVICE,), jupyterhub_namespace="jupyterhub")
    policies = {one["metadata"]["name"] for one in tenancy_objects(spec) if one["kind"] == "NetworkPolicy"}
    assert {way.policy for way in [*ways_out(spec), *ways_in(spec)]} == policies - {"default-deny"}
    shown = {way.name: way.ports for way in ways_out(spec)}
    assert (shown["mlflow"], shown["openai"], shown["internet"]) == ((5000,), (443,), (443, 80))


def test_a_way_out_reaches_the_cluster_is_kept_and_goes_again(place: Place) -> None:
    place.reconcile()
    namespace = place.tenancy.namespace
    place.cluster.egress = [OPENAI.to_json()]
    place.cluster.save()
    assert keep_in_step(now=place.now) == 1
    place.reconcile()
    assert place.row.is_settled
    body: dict[str, Any] = {"spec": {"egress": [{}]}}
    place.kubernetes.patch(POLICY, "allow-outside", namespace, body)
    place.reconcile()
    found = place.kubernetes.get(POLICY, "allow-outside", namespace) or {}
    assert found["spec"]["egress"][0]["to"] == [{"ipBlock": {"cidr": "10.20.0.5/32"}}]
    place.cluster.egress = []
    place.cluster.save()
    keep_in_step(now=place.now)
    place.reconcile()
    assert place.kubernetes.get(POLICY, "allow-outside", namespace) is None
    assert place.row.is_settled


def _told(person: User, client: Client, place: Place) -> tuple[int, int]:
    client.force_login(person)
    page = client.get(f"/tenancies/{place.tenancy.pk}/reach")
    return page.status_code, Caller(person).get(f"tenancies/{place.tenancy.pk}/reach/").status_code


def test_the_page_and_the_api_say_it_to_the_team_and_not_to_others(place: Place, client: Client) -> None:
    place.cluster.egress = [OPENAI.to_json()]
    place.cluster.save()
    keep_in_step(now=place.now)
    client.force_login(place.ada)
    said = client.get(f"/tenancies/{place.tenancy.pk}/reach").content.decode()
    assert "10.20.0.5/32" in said
    assert "169.254.169.254" in said
    answer = Caller(place.ada).get(f"tenancies/{place.tenancy.pk}/reach/").json()
    assert {"name": "openai", "where": "10.20.0.5/32", "ports": [443], "policy": "allow-outside"} in answer[
        "outward"
    ]
    assert (
        f"/tenancies/{place.tenancy.pk}/reach"
        in client.get(f"/teams/{place.tenancy.team.slug}/").content.decode()
    )
    outsider = factories.person("Mallory Finch", teams=[factories.team("Robotics")])
    assert _told(outsider, client, place) == (404, 404)
    assert _told(factories.person("Priya Raman", Role.PLATFORM_LEAD), client, place) == (200, 200)
