"""Ways out of a cluster lead to what they name, never to a node's identity, and inside only to endpoints."""

from ipaddress import ip_address, ip_network
from typing import Any

import pytest
from django.test import Client
from hypothesis import given
from hypothesis import strategies as st

from accounts.models import User
from accounts.refusals import BadInput, NoRight
from accounts.roles import Role
from fleet.actions import change_cluster
from fleet.egress import CLOSED, PRIVATE, EgressRefused, EgressRule, egress_from
from fleet.models import Cluster
from tests import factories

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
    ],
)
def test_a_rule_that_could_mean_more_than_it_says_is_refused(given: dict[str, Any], words: str) -> None:
    with pytest.raises(EgressRefused, match=words):
        egress_from([HTTPS | given])


def test_rules_are_named_once() -> None:
    with pytest.raises(EgressRefused, match="each named once"):
        egress_from([HTTPS, HTTPS])
    assert [one.name for one in egress_from([OPENAI, HTTPS])] == ["internet", "openai"]
    assert [one.to_json() for one in egress_from([OPENAI, HTTPS])] == [HTTPS, OPENAI]


def test_the_internet_is_opened_without_what_is_inside() -> None:
    [block] = rule("0.0.0.0/0").blocks()
    assert block["cidr"] == "0.0.0.0/0"
    assert {"10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "169.254.0.0/16"} <= {*block["except"]}
    assert {"168.63.129.16/32", "100.64.0.0/10"} <= {*block["except"]}
    [six] = rule("::/0").blocks()
    assert {"fc00::/7", "fe80::/10"} <= {*six["except"]}
    assert rule("203.0.113.0/24").blocks() == [{"cidr": "203.0.113.0/24"}]


@given(st.integers(0, 2**32 - 1), st.integers(0, 32), st.booleans())
def test_no_rule_that_is_taken_opens_what_is_closed(address: int, prefix: int, inside: bool) -> None:
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
        change_cluster(cluster.pk, values={"egress": []}, by=factories.person("Ada Okafor"))
    with pytest.raises(BadInput) as refused:
        change_cluster(cluster.pk, values={"egress": [HTTPS | {"cidrs": ["10.0.0.0/8"]}]}, by=priya)
    assert (refused.value.field, Cluster.objects.get(pk=cluster.pk).egress) == ("egress", [HTTPS, OPENAI])


def test_the_form_sets_them_and_shows_what_is_wrong(priya: User, client: Client) -> None:
    cluster = factories.cluster()
    client.force_login(priya)
    page = client.get(f"/clusters/{cluster.name}/edit")
    assert "Where teams’ pods may go outside" in page.content.decode()
