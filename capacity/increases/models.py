"""Requests for more quota as the portal keeps them: what was asked for, by whom and why, and what Azure said."""

from django.conf import settings
from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Lower

from capacity.increases.states import OPEN, State
from reconciling.models import Leased, LeasedQuerySet
from web.rows import Row

IS_OPEN = Q(state__in=sorted(OPEN))
# Of these Azure has given the number of its own request.
NUMBERED = [State.SENT.value, State.GRANTED.value]


class QuotaIncreaseQuerySet(LeasedQuerySet["QuotaIncrease"]):
    """Ways to look at requests for more quota."""

    def in_progress(self) -> "QuotaIncreaseQuerySet":
        """Those that are to be sent, or wait for Azure."""
        return self.filter(IS_OPEN)

    def of_quota(
        self, subscription: str, region: str, family: str
    ) -> "QuotaIncreaseQuerySet":
        """Those for one quota, whatever the capitals of its name."""
        return self.filter(
            subscription=subscription, region=region, family__iexact=family
        )


class QuotaIncrease(Row, Leased):
    """A request for a higher limit of one quota, in vCPUs; `family` is its name as Azure writes it.

    `sending_since` is set while it is not known whether Azure has it: from before it is sent until it answers.
    `azure_id` is the name of Azure's own request.
    """

    subscription = models.CharField(max_length=36)
    region = models.CharField(max_length=40)
    family = models.CharField(max_length=80)
    title = models.CharField(max_length=200)
    limit = models.PositiveIntegerField()
    limit_before = models.PositiveIntegerField()
    reason = models.CharField(max_length=1000)
    asked_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.PROTECT, related_name="+"
    )
    asked_at = models.DateTimeField()
    state = models.CharField(
        max_length=10,
        choices=[(each.value, each.words) for each in State],
        default=State.NEW,
    )
    sending_since = models.DateTimeField(null=True)
    azure_id = models.CharField(max_length=80, blank=True, default="")
    sent_at = models.DateTimeField(null=True)
    # Azure's sentence, or why it is not sent.
    message = models.CharField(max_length=600, blank=True, default="")
    # When Azure answered, the portal gave up, or somebody withdrew it.
    answered_at = models.DateTimeField(null=True)

    objects = QuotaIncreaseQuerySet.as_manager()

    class Meta(Leased.Meta):
        ordering = ["-id"]
        indexes = [
            models.Index(
                fields=["requeue_at"], condition=IS_OPEN, name="increase_is_due"
            ),
            models.Index(
                fields=["subscription", "region", "-id"], name="increase_of_region"
            ),
        ]
        constraints = [
            *Leased.Meta.constraints,
            models.UniqueConstraint(
                "subscription",
                "region",
                Lower("family"),
                condition=IS_OPEN,
                name="one_increase_of_a_quota_is_open",
            ),
            models.CheckConstraint(
                condition=Q(state__in=[each.value for each in State]),
                name="an_increase_is_in_a_known_state",
            ),
            models.CheckConstraint(
                condition=Q(limit__gt=F("limit_before")),
                name="an_increase_asks_for_more",
            ),
            models.CheckConstraint(
                condition=~Q(reason=""), name="an_increase_has_a_reason"
            ),
            models.CheckConstraint(
                condition=~Q(state__in=NUMBERED)
                | (~Q(azure_id="") & Q(sent_at__isnull=False)),
                name="an_increase_that_was_sent_has_a_number",
            ),
            models.CheckConstraint(
                condition=(IS_OPEN & Q(answered_at=None))
                | (~IS_OPEN & Q(answered_at__isnull=False)),
                name="an_increase_is_open_until_it_is_answered",
            ),
            models.CheckConstraint(
                condition=~Q(state__in=[State.REFUSED.value, State.FAILED.value])
                | ~Q(message=""),
                name="an_increase_is_refused_for_a_reason",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.title}: {self.limit_before} → {self.limit} vCPUs"

    @property
    def status(self) -> State:
        """How far it has come."""
        return State(self.state)

    @property
    def is_open(self) -> bool:
        """Whether it is to be sent, or waits for Azure."""
        return self.state in OPEN

    @property
    def may_be_withdrawn(self) -> bool:
        """Whether Azure certainly has nothing of it."""
        return (
            self.state == State.NEW
            and self.sending_since is None
            and self.lease_until is None
        )
