"""What a tenancy's pods can reach: on the cluster, on the page and over the API the same."""

from typing import Any

import pytest
from django.test import Client

from accounts.models import User
from accounts.roles import Role
from allocations.sync import keep_in_step
from fleet.egress import EgressRule
from fleet.models import Cluster
from fleet.services import SharedService
from provisioning.clusters.observe import look_at
from provisioning.desired.manifests import tenancy_objects
from provisioning.desired.spec import TenancySpec
from provisioning.reach import ways_in, ways_out
from tests import factories
from tests.calling import Caller
from tests.provisioning.conftest import Place
from tests.provisioning.specs import SAMPLE, sample

HUB = EgressRule(
    name="hub", names=("huggingface.co", "*.huggingface.co"), ports=(443, 8443)
)
CILIUM = ("cilium.io/v2", "CiliumNetworkPolicy")
POLICY = ("networking.k8s.io/v1", "NetworkPolicy")
OPENAI = EgressRule(name="openai", cidrs=("10.20.0.5/32",), ports=(443,), inside=True)
INTERNET = EgressRule(name="internet", cidrs=("0.0.0.0/0",), ports=(443, 80))
SERVICE = SharedService(
    name="mlflow", namespace="mlflow", labels=(("app", "mlflow"),), port=5000
)


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


def test_names_are_a_policy_of_cilium_and_leave_the_others_as_they_are() -> None:
    spec = sample(egress=(HUB, INTERNET), by_name=True)
    found = {one["metadata"]["name"]: one for one in tenancy_objects(spec)}
    assert (
        found["allow-outside"]["spec"]["egress"][0]["to"][0]["ipBlock"]["cidr"]
        == "0.0.0.0/0"
    )
    policy = found["allow-outside-names"]
    assert (policy["apiVersion"], policy["kind"]) == CILIUM
    hosts = [{"matchName": "huggingface.co"}, {"matchPattern": "*.huggingface.co"}]
    dns = {"k8s:io.kubernetes.pod.namespace": "kube-system", "k8s:k8s-app": "kube-dns"}
    assert policy["spec"] == {
        "endpointSelector": {},
        "egress": [
            {
                "toEndpoints": [{"matchLabels": dns}],
                "toPorts": [
                    {
                        "ports": [{"port": "53", "protocol": "ANY"}],
                        "rules": {"dns": hosts},
                    }
                ],
            },
            {
                "toFQDNs": hosts,
                "toPorts": [
                    {
                        "ports": [
                            {"port": "443", "protocol": "TCP"},
                            {"port": "8443", "protocol": "TCP"},
                        ]
                    }
                ],
            },
        ],
        "egressDeny": [
            {
                "toCIDR": [
                    "169.254.169.254/32",
                    "168.63.129.16/32",
                    "100.100.100.200/32",
                    "fd00:ec2::254/128",
                ]
            }
        ],
    }
    others = {name: one for name, one in found.items() if name != "allow-outside-names"}
    ranges_alone = tenancy_objects(sample(egress=(INTERNET,), by_name=True))
    assert others == {one["metadata"]["name"]: one for one in ranges_alone}


def test_names_alone_need_no_policy_of_ranges_and_are_left_out_where_nothing_enforces_them() -> (
    None
):
    names = {
        one["metadata"]["name"]
        for one in tenancy_objects(sample(egress=(HUB,), by_name=True))
    }
    assert ("allow-outside" in names, "allow-outside-names" in names) == (False, True)
    spec = sample(egress=(HUB,))
    assert tenancy_objects(spec) == tenancy_objects(SAMPLE)
    assert "hub" not in {way.name for way in ways_out(spec)}


def test_a_spec_comes_back_with_its_ways_out() -> None:
    one = sample(egress=(HUB, INTERNET, OPENAI), by_name=True)
    assert TenancySpec.from_json(one.to_json()) == one


def test_the_words_name_every_policy_that_lets_something_through() -> None:
    spec = sample(
        egress=(HUB, INTERNET, OPENAI),
        services=(SERVICE,),
        jupyterhub_namespace="jupyterhub",
        by_name=True,
    )
    kinds = {POLICY[1], CILIUM[1]}
    policies = {
        one["metadata"]["name"] for one in tenancy_objects(spec) if one["kind"] in kinds
    }
    assert {way.policy for way in [*ways_out(spec), *ways_in(spec)]} == policies - {
        "default-deny"
    }
    shown = {way.name: way.ports for way in ways_out(spec)}
    assert (shown["mlflow"], shown["openai"], shown["internet"]) == (
        (5000,),
        (443,),
        (443, 80),
    )


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


@pytest.mark.slow
def test_names_reach_a_cluster_whose_network_is_cilium_are_kept_and_go_again(
    place: Place,
) -> None:
    look_at(place.cluster.pk, now=place.now)
    assert Cluster.objects.get(pk=place.cluster.pk).has_cilium is False
    place.kubernetes.write("POST", "/sandbox/cilium")
    look_at(place.cluster.pk, now=place.now)
    place.cluster.refresh_from_db()
    assert (place.cluster.has_cilium, place.cluster.takes_names) == (True, True)
    place.reconcile()
    namespace = place.tenancy.namespace
    place.cluster.egress = [HUB.to_json()]
    place.cluster.save()
    assert keep_in_step(now=place.now) == 1
    # The first list of a kind that was only just defined is refused for a second.
    place.reconcile()
    place.reconcile()
    assert place.row.is_settled
    assert place.kubernetes.get(POLICY, "allow-outside", namespace) is None
    writes = place.kubernetes.writes
    place.reconcile()
    assert place.kubernetes.writes == writes
    body: dict[str, Any] = {
        "spec": {"egress": [{"toEntities": ["all"]}], "egressDeny": None}
    }
    place.kubernetes.patch(CILIUM, "allow-outside-names", namespace, body)
    place.reconcile()
    found = place.kubernetes.get(CILIUM, "allow-outside-names", namespace) or {}
    assert [one["matchName"] for one in found["spec"]["egress"][1]["toFQDNs"][:1]] == [
        "huggingface.co"
    ]
    assert found["spec"]["egressDeny"]
    more: dict[str, Any] = {
        "specs": [{"endpointSelector": {}, "egress": [{"toEntities": ["all"]}]}]
    }
    place.kubernetes.patch(CILIUM, "allow-outside-names", namespace, more)
    place.reconcile()
    assert "specs" not in (
        place.kubernetes.get(CILIUM, "allow-outside-names", namespace) or {}
    )
    place.cluster.egress = []
    place.cluster.save()
    keep_in_step(now=place.now)
    place.reconcile()
    assert place.kubernetes.get(CILIUM, "allow-outside-names", namespace) is None
    assert place.row.is_settled


def test_a_cluster_that_loses_its_cilium_says_so_and_its_teams_stay_true(
    place: Place,
) -> None:
    place.cluster.has_cilium, place.cluster.egress = True, [HUB.to_json()]
    place.cluster.save()
    look_at(place.cluster.pk, now=place.now)
    cluster = Cluster.objects.get(pk=place.cluster.pk)
    [part] = [one for one in cluster.parts if one["part"] == "Ways out by name"]
    assert (part["state"], cluster.health) == ("bad", "bad")
    assert part["words"].startswith("CiliumNetworkPolicy is not served")
    keep_in_step(now=place.now)
    place.reconcile()
    assert place.row.is_settled


def test_without_the_right_to_write_them_names_count_as_not_enforced(
    place: Place,
) -> None:
    place.kubernetes.write("POST", "/sandbox/cilium")
    role = ("rbac.authorization.k8s.io/v1", "ClusterRole")
    found = place.kubernetes.get(role, "quartermaster-provisioner") or {}
    rules = [rule for rule in found["rules"] if rule["apiGroups"] != ["cilium.io"]]
    place.kubernetes.patch(role, "quartermaster-provisioner", None, {"rules": rules})
    look_at(place.cluster.pk, now=place.now)
    assert Cluster.objects.get(pk=place.cluster.pk).has_cilium is False
    place.reconcile()
    assert place.row.is_settled


@pytest.mark.parametrize(
    ("known", "words"),
    [
        ({}, "no places; whether DNS names are possible is not known yet"),
        (
            {"has_cilium": False, "egress": [OPENAI.to_json()]},
            "1 place; DNS names are not possible",
        ),
        (
            {"has_cilium": True, "egress": [OPENAI.to_json(), HUB.to_json()]},
            "2 places; DNS names are possible",
        ),
        (
            {"has_cilium": True, "outside_by_name": "none"},
            "no places; DNS names are not possible",
        ),
    ],
)
def test_the_clusters_page_says_whether_names_are_possible(
    db: None, client: Client, known: dict[str, Any], words: str
) -> None:
    cluster = factories.cluster(**known)
    client.force_login(factories.person("Priya Raman", Role.PLATFORM_LEAD))
    assert words in client.get(f"/clusters/{cluster.name}/").content.decode()


def _told(person: User, client: Client, place: Place) -> tuple[int, int]:
    client.force_login(person)
    page = client.get(f"/tenancies/{place.tenancy.pk}/reach")
    return page.status_code, Caller(person).get(
        f"tenancies/{place.tenancy.pk}/reach/"
    ).status_code


def test_the_page_and_the_api_say_it_to_the_team_and_not_to_others(
    place: Place, client: Client
) -> None:
    place.cluster.egress = [OPENAI.to_json(), HUB.to_json()]
    place.cluster.has_cilium = True
    place.cluster.save()
    keep_in_step(now=place.now)
    client.force_login(place.ada)
    said = client.get(f"/tenancies/{place.tenancy.pk}/reach").content.decode()
    assert "10.20.0.5/32" in said
    assert "huggingface.co, *.huggingface.co" in said
    assert "169.254.169.254" in said
    answer = Caller(place.ada).get(f"tenancies/{place.tenancy.pk}/reach/").json()
    assert {
        "name": "openai",
        "where": "10.20.0.5/32",
        "ports": [443],
        "policy": "allow-outside",
    } in answer["outward"]
    assert (
        f"/tenancies/{place.tenancy.pk}/reach"
        in client.get(f"/teams/{place.tenancy.team.slug}/").content.decode()
    )
    outsider = factories.person("Mallory Finch", teams=[factories.team("Robotics")])
    assert _told(outsider, client, place) == (404, 404)
    assert _told(
        factories.person("Priya Raman", Role.PLATFORM_LEAD), client, place
    ) == (200, 200)
