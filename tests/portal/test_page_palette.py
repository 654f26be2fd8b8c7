"""Search: what is found, what is not, and in which shape."""

import pytest
from django.test import Client

from accounts.roles import Role
from tests import factories

pytestmark = pytest.mark.django_db


def found(client: Client, q: str) -> str:
    """What htmx gets."""
    answer = client.get("/palette", {"q": q}, headers={"HX-Request": "true"})
    assert answer.status_code == 200
    assert "<html" not in answer.content.decode()
    return answer.content.decode()


def test_it_finds_requests_teams_and_clusters_a_person_may_see(client: Client) -> None:
    vision, speech = factories.team("Vision"), factories.team("Speech")
    ada = factories.person("Ada", teams=[vision])
    place = factories.tenancy(
        vision, factories.cluster("training", title="Training East US")
    )
    asked = factories.request(ada, place, factories.flavor(place.cluster), gpus=1)
    mallory = factories.person("Mallory", teams=[speech])
    other = factories.tenancy(speech, place.cluster)
    hidden = factories.request(mallory, other, factories.flavor(place.cluster), gpus=1)
    client.force_login(ada)
    assert f"/requests/{asked.pk}/" in found(client, str(asked.pk))
    assert f"/requests/{asked.pk}/" in found(client, f"request-{asked.pk}")
    assert f"/requests/{hidden.pk}/" not in found(client, str(hidden.pk)) + found(
        client, "mallory"
    ) + found(client, "a100")
    assert "/teams/vision/" in found(client, "vis")
    assert "Nothing is called" in found(client, "spee")
    assert "/clusters/training/" in found(client, "train")


def test_it_knows_pages_and_actions_by_the_beginnings_of_words(client: Client) -> None:
    client.force_login(factories.person("Ada", teams=[factories.team("Vision")]))
    assert "/requests/new" in found(client, "ask")
    assert "/teams/new" in found(client, "team boa")
    assert "Add a cluster" not in found(client, "add")
    client.force_login(factories.person("Priya", Role.PLATFORM_LEAD))
    assert "Add a cluster" in found(client, "add")
    assert "/approvals/" in found(client, "appr")


def test_without_script_it_is_a_page(client: Client) -> None:
    client.force_login(factories.person("Ada"))
    answer = client.get("/palette?q=<script>")
    assert b"<html" in answer.content
    assert b"<script>" not in answer.content.split(b"<body")[1].split(b"search-q")[1]
    assert "HX-Request" in answer["Vary"]


def test_numbers_too_large_for_any_request_find_nothing(client: Client) -> None:
    client.force_login(factories.person("Ada"))
    assert "Nothing is called" in found(client, "9" * 40)


def test_it_offers_no_action_to_who_may_not_take_it(client: Client) -> None:
    client.force_login(factories.person("Sam", Role.AUDITOR))
    assert "/requests/new" not in found(client, "ask")
    assert "/teams/new" not in found(client, "team boa")
