"""Figures of what waits for people: notices on their way to them, and requests that they have to decide."""

from collections.abc import Iterator

from django.db.models import Count, Min, Q
from django.db.models.functions import Coalesce

from approvals.models import Request
from notices.kinds import Way
from notices.models import Delivery
from notices.servers import mail_is_configured
from portal.metrics.families import Family, age_of
from portal.metrics.moment import Moment


def notices(moment: Moment) -> Iterator[Family]:
    """What is to be sent, by the way that it goes."""
    rows = Delivery.objects.waiting()
    ways = set(Way)
    if not mail_is_configured():
        rows, ways = rows.not_by_mail(), ways - {Way.EMAIL}
    counted = {
        way: (number, oldest)
        for way, number, oldest in rows.order_by()
        .values("way")
        .annotate(number=Count("pk"), oldest=Min(Coalesce("notice__at", "digest__at")))
        .values_list("way", "number", "oldest")
    }
    found = {way.value: counted.get(way.value, (0, None)) for way in sorted(ways)}
    yield Family(
        name="quartermaster_notices_waiting",
        words="Messages that are to be sent, by way; mails only where a mail server is set.",
        labels=["way"],
        samples={(way,): number for way, (number, _) in found.items()},
    )
    yield Family(
        name="quartermaster_notices_oldest_waiting_seconds",
        words="Seconds since what the oldest of these messages tells of; 0 where none waits.",
        labels=["way"],
        samples={
            (way,): age_of(oldest, now=moment.now) for way, (_, oldest) in found.items()
        },
    )


def requests(moment: Moment) -> Iterator[Family]:
    """What waits for a decision, or for its requester's answer first."""
    late = Q(pk__in=Request.objects.past_target(moment.now).values("pk"))
    counted = {
        turn: (number, oldest, past_target)
        for turn, number, oldest, past_target in Request.objects.waiting()
        .order_by()
        .values("turn")
        .annotate(
            number=Count("pk"),
            oldest=Min("created_at"),
            past_target=Count("pk", filter=late),
        )
        .values_list("turn", "number", "oldest", "past_target")
    }
    found = {turn: counted.get(turn, (0, None, 0)) for turn in Request.Turn.values}
    yield Family(
        name="quartermaster_requests_waiting",
        words="Requests that are not decided, by whose turn it is: an approver's, or the requester's who was asked.",
        labels=["turn"],
        samples={(turn,): number for turn, (number, _, _) in found.items()},
    )
    yield Family(
        name="quartermaster_requests_oldest_waiting_seconds",
        words="Seconds since the oldest of these requests was made; 0 where none waits.",
        labels=["turn"],
        samples={
            (turn,): age_of(oldest, now=moment.now)
            for turn, (_, oldest, _) in found.items()
        },
    )
    yield Family(
        name="quartermaster_requests_past_target",
        words="Requests with an open step whose target time is over.",
        samples={(): sum(past_target for _, _, past_target in found.values())},
    )
