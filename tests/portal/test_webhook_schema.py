"""The description of the API has every event of webhooks, as it is sent."""

from typing import Any

import pytest
import yaml
from rest_framework import serializers

from notices.channels.events import WebhookEvent
from portal.http.webhooks import DATA
from scripts.packages import ROOT


@pytest.fixture(scope="module")
def described() -> dict[str, Any]:
    text = (ROOT / "docs" / "reference" / "openapi.yaml").read_text()
    loaded: dict[str, Any] = yaml.load(text, Loader=yaml.CSafeLoader)
    return loaded


@pytest.mark.slow
@pytest.mark.parametrize("event", WebhookEvent)
def test_an_event_is_described_with_the_fields_that_are_sent(
    described: dict[str, Any], event: WebhookEvent
) -> None:
    subject = event.value.partition(".")[0]
    call = described["webhooks"][event.value]["post"]
    content = call["requestBody"]["content"]["application/json"]
    name = content["schema"]["$ref"].rpartition("/")[2]
    body = described["components"]["schemas"][name]
    assert set(body["properties"]) == {"type", "timestamp", "data"}
    data = body["properties"]["data"]["$ref"].rpartition("/")[2]
    fields = described["components"]["schemas"][data]["properties"]
    sent = DATA[subject]()
    assert isinstance(sent, serializers.Serializer)
    assert set(fields) == {"url", *sent.fields}
    # What the receiver answers is not the portal's to describe.
    assert set(call["responses"]) == {"2XX", "410", "default"}


def test_no_event_is_described_that_is_not_sent(described: dict[str, Any]) -> None:
    assert set(described["webhooks"]) == {event.value for event in WebhookEvent}
