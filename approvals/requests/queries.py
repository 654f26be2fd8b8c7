"""What the lists of the API may be narrowed to, as their pages narrow them."""

from rest_framework import serializers

from approvals.requests.listing import AGES, SIZES
from approvals.states import STORED
from catalogue.offerings import OFFERINGS
from web.strict import Choice, Moment, PageQuery, Text

ORDERINGS = (
    "-created_at",
    "created_at",
    "-updated_at",
    "updated_at",
    "-usd",
    "usd",
    "-until",
    "until",
)


class RequestQuery(PageQuery):
    """Which requests to list, and in which order."""

    team = Text(required=False, max_length=40)
    state = Choice(choices=[state.value for state in STORED], required=False)
    live = Choice(
        choices=["true", "false"],
        required=False,
        help_text="Only what waits, is booked or held; or only what is over.",
    )
    offering = Choice(choices=list(OFFERINGS), required=False)
    requester = serializers.UUIDField(
        required=False, help_text="The object id of who asked."
    )
    q = Text(
        required=False,
        max_length=100,
        help_text="Text in the reason, the requester's name or the flavor.",
    )
    ordering = Choice(choices=ORDERINGS, required=False)
    updated_since = Moment(required=False)


class ApprovalQuery(PageQuery):
    """What the queue is narrowed to, as its page narrows it."""

    team = Text(required=False, max_length=40)
    offering = Choice(choices=list(OFFERINGS), required=False)
    size = Choice(
        choices=list(SIZES), required=False, help_text="large is 8 GPUs and more."
    )
    age = Choice(
        choices=list(AGES),
        required=False,
        help_text="Older than a day, or than a week.",
    )
