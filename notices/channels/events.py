"""What webhooks are told about: the events that they may be subscribed to, by the names that receivers see. Pure."""

from collections.abc import Mapping
from enum import StrEnum


class WebhookEvent(StrEnum):
    """Something that happened; the value is the `type` of its message, and never changes its meaning."""

    REQUEST_WAITING = "request.waiting"
    REQUEST_APPROVED = "request.approved"
    REQUEST_REJECTED = "request.rejected"
    REQUEST_WITHDRAWN = "request.withdrawn"
    REQUEST_LAPSED = "request.lapsed"
    ALLOCATION_READY = "allocation.ready"
    ALLOCATION_ENDING = "allocation.ending"
    ALLOCATION_ENDED = "allocation.ended"
    RUN_ENDED = "run.ended"
    TEST = "webhook.test"

    @property
    def words(self) -> str:
        """The event in a sentence."""
        return WORDS[self]


WORDS: Mapping[WebhookEvent, str] = {
    WebhookEvent.REQUEST_WAITING: "A request, new or changed, waits for people to decide",
    WebhookEvent.REQUEST_APPROVED: "A request was approved, by people or by the policy",
    WebhookEvent.REQUEST_REJECTED: "A request was rejected",
    WebhookEvent.REQUEST_WITHDRAWN: "A request was withdrawn",
    WebhookEvent.REQUEST_LAPSED: "A request lapsed, because nobody decided or answered in time",
    WebhookEvent.ALLOCATION_READY: "An allocation is there, or seconds away, and costs from now on",
    WebhookEvent.ALLOCATION_ENDING: "An allocation ends soon",
    WebhookEvent.ALLOCATION_ENDED: "An allocation, or a part of one, has ended",
    WebhookEvent.RUN_ENDED: "A run has ended",
    WebhookEvent.TEST: "A platform lead tries the webhook",
}
# A test goes out because somebody pressed a button: there is nothing to subscribe to.
SUBSCRIBABLE = tuple(event for event in WebhookEvent if event is not WebhookEvent.TEST)
