"""What was asked, how the policy judged it, and who decided."""

from decimal import Decimal

from django.conf import settings
from django.db import models
from django.db.models import Exists, F, OuterRef, Q, Subquery, Value
from django.db.models.functions import Cast, Concat

from accounts.models import Team
from accounts.roles import Permission
from accounts.teams import TeamScopedQuerySet
from allocations.models import Allocation
from approvals.policy import Outcome, Seat
from approvals.states import STORED, State
from fleet.models import Flavor
from provisioning.models import Tenancy

SEATS = [(seat.value, seat.words) for seat in Seat]
RIGHT_OF = {
    Seat.PLATFORM_LEADS: Permission.DECIDE_AS_PLATFORM,
    Seat.ENGINEERING_LEADERSHIP: Permission.DECIDE_AS_LEADERSHIP,
}


class PolicyVersion(models.Model):
    """The thresholds in force from a moment on; never changed, only followed by a newer version."""

    number = models.PositiveIntegerField(unique=True)
    thresholds = models.JSONField()
    active_from = models.DateTimeField()
    why = models.CharField(max_length=200)

    class Meta:
        ordering = ["-number"]

    def __str__(self) -> str:
        return f"Policy {self.number}"


class RequestQuerySet(TeamScopedQuerySet["Request"]):
    """Ways to look at requests."""

    def waiting(self) -> "RequestQuerySet":
        """Not decided yet."""
        return self.filter(state=State.WAITING)

    def with_holding(self) -> "RequestQuerySet":
        """With `held_gpus` and `held_until` of what is held now, None when nothing is."""
        reference = Concat(Value("request-"), Cast(OuterRef("pk"), models.CharField()))
        held = Allocation.objects.live().filter(reference=reference)
        return self.annotate(
            held_gpus=Subquery(held.values("gpus")[:1]), held_until=Subquery(held.values("until")[:1])
        )

    def awaiting(self, user: "settings.AUTH_USER_MODEL") -> "RequestQuerySet":  # type: ignore[name-defined]
        """Waiting for a decision that this person has the right to make: not their own, not one they voted on."""
        seats = [seat for seat, right in RIGHT_OF.items() if user.may(right)]
        open_step = Step.objects.filter(
            request=OuterRef("pk"), version=OuterRef("content_version"), done_at=None
        )
        voted = Decision.objects.filter(
            request=OuterRef("pk"),
            content_version=OuterRef("content_version"),
            by=user,
            verdict__in=Decision.VOTES,
        )
        return (
            self.waiting()
            .exclude(requester=user)
            .annotate(seat_open=Subquery(open_step.order_by("position").values("seat")[:1]))
            .filter(~Exists(voted), seat_open__in=seats)
        )


class Request(models.Model):
    """One ask for GPUs, by a person for a team. `version` counts every change and is the ETag."""

    class Purpose(models.TextChoices):
        TRAINING = "training", "Training"
        NOTEBOOK = "notebook", "Notebook"
        INFERENCE = "inference", "Inference"
        OTHER = "other", "Something else"

    class Turn(models.TextChoices):
        APPROVER = "approver", "approver"
        REQUESTER = "requester", "requester"

    team = models.ForeignKey(Team, models.PROTECT, related_name="requests")
    tenancy = models.ForeignKey(Tenancy, models.PROTECT, related_name="requests")
    requester = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, related_name="requests")
    flavor = models.ForeignKey(Flavor, models.PROTECT, related_name="+")
    gpus = models.PositiveIntegerField()
    until = models.DateTimeField()
    purpose = models.CharField(max_length=12, choices=Purpose.choices)
    reason = models.TextField(blank=True, max_length=2000)

    state = models.CharField(
        max_length=12, choices=[(s.value, s.words) for s in STORED], default=State.WAITING
    )
    turn = models.CharField(max_length=10, choices=Turn.choices, default=Turn.APPROVER)
    content_version = models.PositiveIntegerField(default=1)
    version = models.PositiveIntegerField(default=1)
    usd = models.DecimalField(max_digits=12, decimal_places=2)
    approved_gpus = models.PositiveIntegerField(null=True)
    created_at = models.DateTimeField(db_index=True)
    updated_at = models.DateTimeField()
    decided_at = models.DateTimeField(null=True)

    objects = RequestQuerySet.as_manager()

    class Meta:
        ordering = ["-created_at", "-id"]
        indexes = [
            models.Index(fields=["team", "-created_at", "-id"], name="request_of_team"),
            models.Index(fields=["-created_at", "-id"], name="request_newest"),
            models.Index(fields=["created_at"], condition=Q(state="waiting"), name="request_waiting"),
        ]
        constraints = [
            models.CheckConstraint(condition=Q(gpus__gte=1), name="a_request_asks_for_a_gpu"),
            models.CheckConstraint(
                condition=Q(until__gt=F("created_at")), name="a_request_ends_after_it_is_made"
            ),
            models.CheckConstraint(
                condition=Q(state__in=[s.value for s in STORED]), name="a_request_is_in_a_known_state"
            ),
            models.CheckConstraint(
                condition=Q(state="approved", approved_gpus__isnull=False, decided_at__isnull=False)
                | (~Q(state="approved") & Q(approved_gpus=None)),
                name="an_approval_says_how_many",
            ),
            models.CheckConstraint(
                condition=Q(approved_gpus=None) | Q(approved_gpus__lte=F("gpus"), approved_gpus__gte=1),
                name="nobody_is_given_more_than_was_asked",
            ),
        ]

    def __str__(self) -> str:
        return f"request {self.pk}"

    @property
    def reference(self) -> str:
        """What its money and its allocation are kept under."""
        return f"request-{self.pk}"


class Evaluation(models.Model):
    """The policy's answer at one moment, with everything it looked at, so that it can be derived again."""

    request = models.ForeignKey(Request, models.PROTECT, related_name="evaluations")
    policy = models.ForeignKey(PolicyVersion, models.PROTECT, related_name="+")
    content_version = models.PositiveIntegerField()
    at = models.DateTimeField()
    outcome = models.CharField(max_length=12, choices=[(o.value, o.value) for o in Outcome])
    answer = models.JSONField()
    inputs = models.JSONField()
    input_hash = models.CharField(max_length=64)

    class Meta:
        ordering = ["id"]

    def __str__(self) -> str:
        return f"{self.request_id} {self.outcome}"


class Step(models.Model):
    """One seat that must decide, in its order, for one version of what is asked."""

    request = models.ForeignKey(Request, models.PROTECT, related_name="steps")
    version = models.PositiveIntegerField()
    position = models.PositiveSmallIntegerField()
    seat = models.CharField(max_length=30, choices=SEATS)
    opened_at = models.DateTimeField(null=True)
    done_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["request_id", "version", "position"]
        constraints = [
            models.UniqueConstraint(fields=["request", "version", "position"], name="a_step_has_its_place"),
            models.CheckConstraint(
                condition=Q(done_at=None) | Q(opened_at__isnull=False),
                name="a_step_is_opened_before_it_is_done",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.request_id}.{self.position} {self.seat}"

    @property
    def words(self) -> str:
        """Who decides, in words."""
        return Seat(self.seat).words


class Decision(models.Model):
    """One verdict by a person or, without `by`, by the policy; append-only."""

    class Verdict(models.TextChoices):
        APPROVE = "approve", "approved"
        REJECT = "reject", "rejected"
        ASK = "ask", "asked"
        ANSWER = "answer", "answered"

    VOTES = (Verdict.APPROVE, Verdict.REJECT)

    request = models.ForeignKey(Request, models.PROTECT, related_name="decisions")
    requester = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, related_name="+")
    by = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, null=True, related_name="decisions")
    step = models.ForeignKey(Step, models.PROTECT, null=True, related_name="decisions")
    content_version = models.PositiveIntegerField()
    verdict = models.CharField(max_length=10, choices=Verdict.choices)
    gpus = models.PositiveIntegerField(null=True)
    usd = models.DecimalField(max_digits=12, decimal_places=2, default=Decimal(0))
    reason = models.TextField(blank=True, max_length=2000)
    at = models.DateTimeField()

    class Meta:
        ordering = ["at", "id"]
        constraints = [
            models.CheckConstraint(
                condition=~Q(by=F("requester")) | Q(verdict="answer") | Q(by=None),
                name="nobody_decides_their_own_request",
            ),
            models.UniqueConstraint(
                fields=["request", "content_version", "by"],
                condition=Q(verdict__in=["approve", "reject"]),
                name="one_vote_per_person",
            ),
            models.CheckConstraint(
                condition=~Q(verdict="approve") | Q(gpus__isnull=False, gpus__gte=1),
                name="an_approving_vote_says_how_many",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.request_id} {self.verdict}"
