"""Ways out of a cluster lead to what they name, never to a node's identity, and inside only to endpoints."""

from ipaddress import ip_address, ip_network
from typing import Any

import pytest
from django.test import Client
from hypothesis import given
from hypothesis import strategies as st

from accounts.models import User
from accounts.roles import Role
from fleet.clusters.actions import add_cluster, change_cluster
from fleet.egress import CLOSED, PRIVATE, EgressRefused, EgressRule, egress_from
from fleet.models import Cluster
from tests import factories
from tests.calling import Caller
from web.refusals import BadInput, NoRight

HTTPS = {"name": "internet", "cidrs": ["0.0.0.0/0"], "ports": [443], "inside": False}
OPENAI = {"name": "openai", "cidrs": ["10.20.0.5/32"], "ports": [443], "inside": True}


def rule(*cidrs: str, **rest: Any) -> EgressRule:
    return EgressRule(name="out", cidrs=cidrs, **rest)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"cidrs": ["169.254.169.254/32"]}, "never opened"),
        ({"cidrs": ["169.254.169.254/32"], "inside": True}, "never opened"),
        ({"cidrs": ["169.254.0.0/20"]}, "never opened"),
        ({"cidrs": ["168.63.129.16/32"]}, "never opened"),
        ({"cidrs": ["fd00:ec2::254/128"], "inside": True}, "never opened"),
        ({"cidrs": ["10.20.0.5/32"]}, "private range"),
        ({"cidrs": ["10.0.0.0/8"], "inside": True}, "a network, not an endpoint"),
        ({"cidrs": ["10.20.0.0/27"], "inside": True}, "a network, not an endpoint"),
        ({"cidrs": ["203.0.113.0/24"], "inside": True}, "is not inside"),
        ({"cidrs": ["203.0.113.7"]}, "is not a range"),
        ({"cidrs": ["203.0.113.7/24"]}, "is not a range"),
        ({"cidrs": [7]}, "is not a range"),
        ({"cidrs": []}, "needs 1 to"),
        ({"cidrs": "0.0.0.0/0"}, "is not a list"),
        ({"ports": []}, "needs 1 to"),
        ({"ports": [443, 443]}, "each once"),
        ({"ports": [0]}, "from 1 to 65535"),
        ({"ports": [True]}, "from 1 to 65535"),
        ({"ports": ["443"]}, "from 1 to 65535"),
        ({"name": "Out"}, "cannot be a rule's name"),
        ({"inside": "yes"}, "not yes or no"),
        ({"more": 1}, "A way out has"),
        ({"names": ["huggingface.co"]}, "make two ways out of it"),
    ],
)
def test_a_rule_that_could_mean_more_than_it_says_is_refused(
    given: dict[str, Any], words: str
) -> None:
    with pytest.raises(EgressRefused, match=words):
        egress_from([HTTPS | given])


HUB = {"name": "hub", "names": ["huggingface.co", "*.huggingface.co"], "ports": [443]}


@pytest.mark.parametrize(
    ("host", "words"),
    [
        ("*", "is not a DNS name"),
        ("**.example.com", "is not a DNS name"),
        ("*.*.example.com", "is not a DNS name"),
        ("a.*.example.com", "is not a DNS name"),
        ("a*b*.example.com", "is not a DNS name"),
        ("*.com", "is too wide"),
        ("hub*.co", "is too wide"),
        ("localhost", "is not a DNS name"),
        ("Example.com", "is not a DNS name"),
        ("example.com.", "is not a DNS name"),
        ("example..com", "is not a DNS name"),
        ("-a.example.com", "is not a DNS name"),
        ("ex ample.com", "is not a DNS name"),
        ("example.com\n", "is not a DNS name"),
        ("https://example.com", "is not a DNS name"),
        (f"{'a' * 64}.com", "is not a DNS name"),
        (f"{'a.' * 126}com", "is not a DNS name"),
        (7, "is not a DNS name"),
        ("203.0.113.7", "is an address"),
        ("db.team.svc.cluster.local", "inside of a cluster"),
        ("db.team.svc", "inside of a cluster"),
        ("7.113.0.203.in-addr.arpa", "inside of a cluster"),
        ("metadata.google.internal", "never opened: it hands out"),
        ("*.google.internal", "never opened: it hands out"),
        ("meta*.azure.internal", "never opened: it hands out"),
        ("169-254-169-254.nip.io", "everybody chooses"),
        ("*.sslip.io", "everybody chooses"),
    ],
)
def test_a_name_that_could_mean_more_than_it_says_is_refused(
    host: object, words: str
) -> None:
    with pytest.raises(EgressRefused, match=words):
        egress_from([HUB | {"names": [host]}])


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"inside": True}, "inside is for ranges"),
        ({"names": []}, "needs 1 to"),
        ({"names": "huggingface.co"}, "is not a list"),
        ({"names": ["huggingface.co", "huggingface.co"]}, "names something twice"),
        ({"names": [f"h{number}.example.com" for number in range(51)]}, "needs 1 to"),
    ],
)
def test_names_have_the_limits_of_ranges(given: dict[str, Any], words: str) -> None:
    with pytest.raises(EgressRefused, match=words):
        egress_from([HUB | given])


def test_names_are_kept_as_they_are_said() -> None:
    hosts = [
        "huggingface.co",
        "*.huggingface.co",
        "cdn-lfs*.huggingface.co",
        "team.openai.azure.com",
        "_a.example.com",
    ]
    said = HUB | {"names": hosts}
    [kept] = egress_from([said])
    assert (kept.names, kept.cidrs, kept.to_json()) == (tuple(hosts), (), said)


def test_rules_are_named_once() -> None:
    with pytest.raises(EgressRefused, match="each named once"):
        egress_from([HTTPS, HTTPS])
    assert [one.name for one in egress_from([OPENAI, HTTPS])] == ["internet", "openai"]
    assert [one.to_json() for one in egress_from([OPENAI, HTTPS])] == [HTTPS, OPENAI]


def test_the_internet_is_opened_without_what_is_inside() -> None:
    [block] = rule("0.0.0.0/0").blocks()
    assert block["cidr"] == "0.0.0.0/0"
    assert {"10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "169.254.0.0/16"} <= {
        *block["except"]
    }
    assert {"168.63.129.16/32", "100.64.0.0/10"} <= {*block["except"]}
    [six] = rule("::/0").blocks()
    assert {"fc00::/7", "fe80::/10"} <= {*six["except"]}
    assert rule("203.0.113.0/24").blocks() == [{"cidr": "203.0.113.0/24"}]


@given(st.integers(0, 2**32 - 1), st.integers(0, 32), st.booleans())
def test_no_rule_that_is_taken_opens_what_is_closed(
    address: int, prefix: int, inside: bool
) -> None:
    network = ip_network((address, prefix), strict=False)
    try:
        [block] = rule(str(network), inside=inside).blocks()
    except EgressRefused:
        return
    outside = [ip_network(text) for text in block.get("except", ())]
    assert all(one.subnet_of(network) for one in outside)  # type: ignore[arg-type]
    shut = [*CLOSED, *([] if inside else PRIVATE)]
    for one in (one for one in shut if one.version == 4):
        for found in (one.network_address, one.broadcast_address):
            assert found not in network or any(found in part for part in outside)
    assert ip_address("169.254.169.254") not in network or any(
        ip_address("169.254.169.254") in part for part in outside
    )


@pytest.fixture
def priya(db: None) -> User:
    return factories.person("Priya Raman", Role.PLATFORM_LEAD)


def test_a_lead_opens_ways_out_and_nobody_else_does(priya: User) -> None:
    cluster = factories.cluster()
    change_cluster(cluster.pk, values={"egress": [HTTPS, OPENAI]}, by=priya)
    assert Cluster.objects.get(pk=cluster.pk).egress == [HTTPS, OPENAI]
    with pytest.raises(NoRight):
        change_cluster(
            cluster.pk, values={"egress": []}, by=factories.person("Ada Okafor")
        )
    with pytest.raises(BadInput) as refused:
        change_cluster(
            cluster.pk, values={"egress": [HTTPS | {"cidrs": ["10.0.0.0/8"]}]}, by=priya
        )
    assert (refused.value.field, Cluster.objects.get(pk=cluster.pk).egress) == (
        "egress",
        [HTTPS, OPENAI],
    )


@pytest.mark.parametrize(
    ("known", "words"),
    [
        ({"has_cilium": None}, "It is not known yet whether"),
        (
            {"has_cilium": False},
            "has no CiliumNetworkPolicy (cilium.io/v2) that the portal may write",
        ),
        ({"has_cilium": True, "outside_by_name": "none"}, "takes no ways out by name"),
    ],
)
def test_names_are_refused_where_nothing_enforces_them(
    priya: User, known: dict[str, Any], words: str
) -> None:
    cluster = factories.cluster(**known)
    with pytest.raises(BadInput) as refused:
        change_cluster(cluster.pk, values={"egress": [HUB]}, by=priya)
    assert (refused.value.field, refused.value.code) == (
        "egress",
        "no_ways_out_by_name",
    )
    assert words in refused.value.message
    assert Cluster.objects.get(pk=cluster.pk).egress == []


@pytest.mark.parametrize("known", [{"has_cilium": True}, {"outside_by_name": "cilium"}])
def test_names_are_taken_where_a_look_or_an_operator_says_that_cilium_is_there(
    priya: User, known: dict[str, Any]
) -> None:
    cluster = factories.cluster(**known)
    change_cluster(cluster.pk, values={"egress": [HUB, HTTPS]}, by=priya)
    assert Cluster.objects.get(pk=cluster.pk).egress == [HUB, HTTPS]
    with pytest.raises(BadInput, match="takes no ways out by name"):
        change_cluster(cluster.pk, values={"outside_by_name": "none"}, by=priya)
    change_cluster(
        cluster.pk, values={"outside_by_name": "none", "egress": []}, by=priya
    )


def test_a_cluster_that_lost_its_cilium_may_still_be_changed_otherwise(
    priya: User,
) -> None:
    cluster = factories.cluster(has_cilium=False, egress=[HUB])
    change_cluster(cluster.pk, values={"title": "Renamed"}, by=priya)
    assert Cluster.objects.get(pk=cluster.pk).title == "Renamed"


def test_a_new_cluster_may_say_so_itself(priya: User) -> None:
    around = {
        "title": "Git",
        "region": "eastus",
        "purpose": "training",
        "egress": [HUB],
    }
    with pytest.raises(BadInput, match="It is not known yet"):
        add_cluster(name="by-name", values=around, by=priya)
    assert add_cluster(
        name="by-name", values=around | {"outside_by_name": "cilium"}, by=priya
    ).takes_names


def test_the_api_says_names_and_takes_them(priya: User) -> None:
    cluster = factories.cluster(has_cilium=True)
    change_cluster(cluster.pk, values={"egress": [HTTPS]}, by=priya)
    caller = Caller(priya)
    found = caller.get(f"clusters/{cluster.name}/").json()
    assert (found["takes_names"], found["outside_by_name"]) == (True, "auto")
    assert found["egress"] == [HTTPS | {"names": []}]
    answer = caller.patch(f"clusters/{cluster.name}/", {"egress": [HUB]})
    assert answer.json()["egress"] == [HUB | {"cidrs": [], "inside": False}]
    refused = caller.patch(
        f"clusters/{cluster.name}/", {"egress": [HUB | {"names": ["*.com"]}]}
    )
    assert (refused.status_code, refused.json()["code"]) == (422, "bad_egress")


def test_the_form_sets_them_and_shows_what_is_wrong(
    priya: User, client: Client
) -> None:
    cluster = factories.cluster()
    client.force_login(priya)
    page = client.get(f"/clusters/{cluster.name}/edit")
    assert "Where teams’ pods may go outside" in page.content.decode()
