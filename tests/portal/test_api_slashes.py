"""What an address of the API says that lacks the slash at its end."""

import pytest
from django.test import Client

from tests import factories
from tests.calling import Caller

pytestmark = pytest.mark.django_db
NOT_FOUND = "There is no such thing, or it is not yours to see."


@pytest.mark.parametrize("path", ["/api/docs", "/api/schema", "/api/v1/teams/vision"])
@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_reading_leads_to_the_address_with_its_slash(path: str, method: str) -> None:
    answer = Client().generic(method, f"{path}?page=2")
    assert (answer.status_code, answer["Location"]) == (301, f"{path}/?page=2")


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
def test_what_is_sent_there_learns_the_address(method: str) -> None:
    answer = Caller(factories.person()).send(method, "/api/v1/requests")
    assert answer.status_code == 404
    assert (answer.json()["code"], answer.json()["detail"]) == (
        "not_found",
        "Write the address with a slash at its end: /api/v1/requests/",
    )


@pytest.mark.parametrize("path", ["/api/v1/nothing", "/api/v1/nothing/", "/api/x//"])
def test_where_nothing_is_with_a_slash_either_nothing_is_told(path: str) -> None:
    answer = Caller(factories.person()).get(path)
    assert (answer.status_code, answer.json()["detail"]) == (404, NOT_FOUND)
