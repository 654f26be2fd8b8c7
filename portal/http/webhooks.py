"""The events of webhooks as the API's description has them, beside its calls: one body for each."""

from collections.abc import Mapping
from functools import cache
from typing import Any

from drf_spectacular.utils import (
    OpenApiResponse,
    OpenApiWebhook,
    extend_schema,
    inline_serializer,
)
from rest_framework import serializers
from rest_framework.serializers import Serializer

from allocations.webhooks import AllocationEventSerializer
from approvals.webhooks import RequestEventSerializer
from notices.channels.events import WebhookEvent
from workloads.runs.webhooks import RunEventSerializer


class TestEventSerializer(serializers.Serializer[Any]):
    """The webhook itself, when a platform lead sends it a test."""

    id = serializers.IntegerField()
    name = serializers.CharField()


DATA: Mapping[str, type[Serializer[Any]]] = {
    "request": RequestEventSerializer,
    "allocation": AllocationEventSerializer,
    "run": RunEventSerializer,
    "webhook": TestEventSerializer,
}


@cache
def _body(subject: str) -> Serializer[Any]:
    """The body of the events about one sort of thing."""
    data = type(
        f"{subject.capitalize()}EventDataSerializer",
        (DATA[subject],),
        {
            "url": serializers.URLField(help_text="The page on which it is read."),
            "__doc__": DATA[subject].__doc__,
        },
    )
    return inline_serializer(
        f"{subject.capitalize()}EventMessage",
        {
            "type": serializers.CharField(help_text="The name of the event."),
            "timestamp": serializers.DateTimeField(help_text="When it happened."),
            "data": data(),
        },
    )


def _described(event: WebhookEvent) -> OpenApiWebhook:
    """One event: its body, and what the portal makes of the answer."""
    answers = {
        "2XX": OpenApiResponse(description="It has arrived."),
        410: OpenApiResponse(
            description="The receiver wants nothing any more: the webhook is switched off."
        ),
        "default": OpenApiResponse(
            description="It is sent again later under the same `webhook-id`, or given up."
        ),
    }
    decorator = extend_schema(
        summary=event.words,
        description=f"{event.words}.",
        request=_body(event.value.partition(".")[0]),
        responses=answers,
    )
    return OpenApiWebhook(event.value, decorator)


REQUEST_WAITING = _described(WebhookEvent.REQUEST_WAITING)
REQUEST_APPROVED = _described(WebhookEvent.REQUEST_APPROVED)
REQUEST_REJECTED = _described(WebhookEvent.REQUEST_REJECTED)
REQUEST_WITHDRAWN = _described(WebhookEvent.REQUEST_WITHDRAWN)
REQUEST_LAPSED = _described(WebhookEvent.REQUEST_LAPSED)
ALLOCATION_READY = _described(WebhookEvent.ALLOCATION_READY)
ALLOCATION_ENDING = _described(WebhookEvent.ALLOCATION_ENDING)
ALLOCATION_ENDED = _described(WebhookEvent.ALLOCATION_ENDED)
RUN_ENDED = _described(WebhookEvent.RUN_ENDED)
TEST = _described(WebhookEvent.TEST)
