"""What was asked, how the policy judged it, and who decided."""

from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

from django.conf import settings
from django.db import models
from django.db.models import Exists, F, OuterRef, Q, Subquery
from django.db.models.fields.json import KT

from accounts import people
from accounts.models import Membership, Team, User
from accounts.roles import Permission
from accounts.stand_ins.actions import givers_for
from accounts.teams import TeamScopedQuerySet
from allocations.models import MADE_BY, Allocation, Hold
from allocations.schedule import IN_AZURE, Provisioner
from approvals.conversation.models import Comment
from approvals.decisions.seats import seats_of
from approvals.states import STORED, State
from catalogue.models import arrival_by, provisioner_of, setting_of
from catalogue.offering import Offering, Spec
from catalogue.offerings import CHOICES, OFFERINGS
from fleet.models import Cluster, Flavor
from policy.evaluation import Outcome
from policy.models import PolicyVersion
from policy.rules import Arrival
from provisioning.models import Tenancy
from web.rows import Row

__all__ = [
    "Comment",
    "Decision",
    "Evaluation",
    "Request",
    "Rerouting",
    "Revision",
    "Step",
]


# What a sweep could not grant is tried again after so long; meanwhile it keeps nothing else waiting.
TRIED_AGAIN_AFTER = timedelta(minutes=1)
# Its reason is shown for so long: by then it has been tried again, or the policy does not approve it any more.
REASON_SHOWN_FOR = timedelta(minutes=10)


def _voted(user: User) -> Exists:
    """Whether this person, or somebody in their seat, has voted on what a request asks now."""
    return Exists(
        Decision.objects.filter(
            Q(by=user) | Q(seat_of=user),
            request=OuterRef("pk"),
            content_version=OuterRef("content_version"),
            verdict__in=Decision.VOTES,
        )
    )


def _ends_in_its_time(field: str, *, latest: str) -> Q:
    """That an end, where there is one, is after the beginning; `latest` is the lookup against what was asked."""
    after_begin = Q(starts_at=None) | Q(**{f"{field}__gt": F("starts_at")})
    in_time = Q(**{f"{field}__gt": F("created_at"), f"{field}__{latest}": F("until")})
    return Q(**{field: None}) | (in_time & after_begin)


class RequestQuerySet(TeamScopedQuerySet["Request"]):
    """Ways to look at requests."""

    def waiting(self) -> "RequestQuerySet":
        """Not decided yet."""
        return self.filter(state=State.WAITING)

    def not_tried_lately(self, now: datetime) -> "RequestQuerySet":
        """Without those that a sweep has just tried to grant and could not."""
        return self.exclude(not_granted_at__gt=now - TRIED_AGAIN_AFTER)

    def overdue(self, now: datetime) -> "RequestQuerySet":
        """Waiting, though the time to decide it, or to answer while its requester has the turn, is over."""
        # The first questions had no date of their own.
        unanswered = Q(answer_by__lte=now) | Q(answer_by=None, until__lte=now)
        over = Q(turn="requester") & unanswered | Q(turn="approver", lapses_at__lte=now)
        return self.waiting().filter(over).order_by("lapses_at")

    def past_target(self, now: datetime) -> "RequestQuerySet":
        """Waiting for a decision whose target time is over."""
        late = Step.objects.past_target(now).filter(
            request=OuterRef("pk"), version=OuterRef("content_version")
        )
        return self.waiting().without_question().filter(Exists(late))

    def with_allocation(self) -> "RequestQuerySet":
        """With what was granted, its task and its tenancy, by which the state that people see is told."""
        return self.select_related(*(f"allocation__{name}" for name in MADE_BY))

    def with_titles(self) -> "RequestQuerySet":
        """With the title of the cluster that each names, for which `where` would ask one by one."""
        named = Cluster.objects.filter(name=OuterRef("cluster_named"))
        return self.alias(cluster_named=KT("spec__cluster")).annotate(
            cluster_title=Subquery(named.values("title")[:1])
        )

    def for_judging(self) -> "RequestQuerySet":
        """With the rows that judging what was asked for reads."""
        return self.select_related(
            "team",
            "requester",
            "flavor__cluster",
            "tenancy__team",
            "tenancy__cluster",
            "renews",
        )

    def held(self) -> "RequestQuerySet":
        """Granted, and not ended."""
        return self.filter(
            state=State.APPROVED,
            allocation__ended_at=None,
            allocation__begun_at__isnull=False,
        )

    def live(self) -> "RequestQuerySet":
        """Waiting, or granted and not ended: booked, being set up, held."""
        granted = Q(state=State.APPROVED, allocation__ended_at=None)
        return self.filter(Q(state=State.WAITING) | granted)

    def over(self) -> "RequestQuerySet":
        """Refused, given up, or granted and ended."""
        ended = Q(state=State.APPROVED, allocation__ended_at__isnull=False)
        refused = (State.REJECTED, State.WITHDRAWN, State.LAPSED)
        return self.filter(Q(state__in=refused) | ended)

    def open_to(self, user: Any, now: datetime) -> "RequestQuerySet":
        """Those a person sees: of their teams, and those whose route leads by them or on which they have decided."""
        if not user.is_authenticated or user.may(Permission.SEE_ALL_TEAMS):
            return self.visible_to(user)
        asked = Step.objects.of(user, seats_of(user, givers_for(user, now))).filter(
            request=OuterRef("pk")
        )
        said = Decision.objects.filter(by=user, request=OuterRef("pk"))
        return self.filter(Q(team_id__in=user.team_ids) | Exists(asked) | Exists(said))

    def awaiting(self, user: User, now: datetime) -> "RequestQuerySet":
        """Waiting for a decision that this person may make, by the rules of `decisions.deciders.seat_for`."""
        steps = Step.objects.open().filter(
            request=OuterRef("pk"), version=OuterRef("content_version")
        )
        may = Q(Exists(steps.of(user, seats_of(user, ()))))
        for giver in givers_for(user, now):
            lent = Q(Exists(steps.at(seats_of(giver, ()))), ~_voted(giver))
            may |= lent & ~Q(requester=giver) & ~Q(team__in=user.team_ids)
        return self.waiting().exclude(requester=user).filter(may, ~_voted(user))

    def with_orphaned(self) -> "RequestQuerySet":
        """Each with `is_orphaned`: whether who asked may not ask for it any more, as `Request.why_orphaned` says."""
        still = Membership.objects.filter(
            team=OuterRef("team"), user=OuterRef("requester"), user__is_active=True
        )
        for_any = people.holding(Permission.ONBOARD_ANY_GROUP).filter(
            pk=OuterRef("requester")
        )
        return self.annotate(is_orphaned=~(Exists(still) | Exists(for_any)))

    def without_question(self) -> "RequestQuerySet":
        """Those whose requester owes no answer: it is for others to act."""
        return self.filter(turn=Request.Turn.APPROVER)


class Request(Row):
    """One ask for an offering, by a person for a team. `version` counts every change and is the ETag.

    `count` says how many units of the offering, `gpus` how many GPUs that is; `content_version` counts what was asked.
    """

    class Purpose(models.TextChoices):
        TRAINING = "training", "Training"
        NOTEBOOK = "notebook", "Notebook"
        INFERENCE = "inference", "Inference"
        OTHER = "other", "Something else"

    class Turn(models.TextChoices):
        APPROVER = "approver", "approver"
        REQUESTER = "requester", "requester"

    team = models.ForeignKey(Team, models.PROTECT, related_name="requests")
    tenancy = models.ForeignKey(
        Tenancy, models.PROTECT, null=True, related_name="requests"
    )
    requester = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.PROTECT, related_name="requests"
    )
    offering = models.CharField(max_length=20, choices=CHOICES)
    spec = models.JSONField()
    flavor = models.ForeignKey(Flavor, models.PROTECT, null=True, related_name="+")
    count = models.PositiveIntegerField()
    gpus = models.PositiveIntegerField()
    until = models.DateTimeField()
    starts_at = models.DateTimeField(
        null=True
    )  # from then on, where it was not to begin at once
    purpose = models.CharField(max_length=12, choices=Purpose.choices)
    reason = models.TextField(blank=True, max_length=2000)
    # Whose route it goes: the policy that judged it, or one that came into force while it waited.
    routed_by = models.ForeignKey(
        PolicyVersion, models.PROTECT, null=True, related_name="+"
    )
    # What is set aside for it, and what was granted.
    hold = models.OneToOneField(Hold, models.PROTECT, related_name="request")
    allocation = models.OneToOneField(
        Allocation, models.PROTECT, null=True, related_name="+"
    )
    # What is held under this one is to go on under the new one.
    renews = models.ForeignKey(
        "self", models.PROTECT, null=True, related_name="renewals"
    )

    state = models.CharField(
        max_length=12,
        choices=[(s.value, s.words) for s in STORED],
        default=State.WAITING,
    )
    turn = models.CharField(max_length=10, choices=Turn.choices, default=Turn.APPROVER)
    content_version = models.PositiveIntegerField(default=1)
    version = models.PositiveIntegerField(default=1)
    usd = models.DecimalField(max_digits=12, decimal_places=2)
    # How its price came about when it was asked: at which price of which day.
    formula = models.CharField(max_length=300, blank=True, default="", db_default="")
    approved_count = models.PositiveIntegerField(null=True)
    # What the steps so far have left of it; null while that is all.
    cut_to = models.PositiveIntegerField(null=True)
    # The same of its end: until when it was granted, and what the steps so far have left of its time.
    approved_until = models.DateTimeField(null=True)
    cut_until = models.DateTimeField(null=True)
    created_at = models.DateTimeField(db_index=True)
    # When it was asked as this version says it: its length and its cost are judged from then on.
    asked_at = models.DateTimeField()
    updated_at = models.DateTimeField()
    decided_at = models.DateTimeField(null=True)
    lapses_at = models.DateTimeField()
    answer_by = models.DateTimeField(null=True)  # while the requester has the turn
    offered_again_at = models.DateTimeField(null=True)
    # When a sweep tried last to grant or to route it and could not; it is left out for a while.
    not_granted_at = models.DateTimeField(null=True)
    # What the portal said then, in words for its requester.
    not_granted_because = models.TextField(blank=True, default="")
    # Who withdrew it and why, as a sentence; empty where its requester did.
    withdrawn_because = models.TextField(blank=True, default="")

    objects = RequestQuerySet.as_manager()

    class Meta:
        ordering = ["-created_at", "-id"]
        indexes = [
            models.Index(fields=["team", "-created_at", "-id"], name="request_of_team"),
            models.Index(fields=["-created_at", "-id"], name="request_newest"),
            models.Index(
                fields=["created_at"],
                condition=Q(state="waiting"),
                name="request_waiting",
            ),
        ]
        constraints = [
            models.CheckConstraint(
                condition=Q(count__gte=1), name="a_request_asks_for_something"
            ),
            models.UniqueConstraint(
                fields=["renews"],
                condition=Q(state="waiting"),
                name="one_renewal_waits_at_a_time",
            ),
            models.CheckConstraint(
                condition=Q(renews=None)
                | (Q(flavor__isnull=False) & ~Q(renews=F("id"))),
                name="a_renewal_is_of_gpus_of_an_earlier_request",
            ),
            models.CheckConstraint(
                condition=Q(flavor=None) | Q(gpus__gte=1, tenancy__isnull=False),
                name="a_request_for_gpus_says_how_many_and_where",
            ),
            models.CheckConstraint(
                condition=Q(offering__in=list(OFFERINGS)),
                name="a_request_is_for_a_known_offering",
            ),
            models.CheckConstraint(
                condition=Q(until__gt=F("created_at")),
                name="a_request_ends_after_it_is_made",
            ),
            models.CheckConstraint(
                condition=Q(starts_at=None) | Q(starts_at__lt=F("until"), renews=None),
                name="a_request_begins_before_it_ends",
            ),
            models.CheckConstraint(
                condition=Q(state__in=[s.value for s in STORED]),
                name="a_request_is_in_a_known_state",
            ),
            models.CheckConstraint(
                condition=Q(
                    state="approved",
                    approved_count__isnull=False,
                    decided_at__isnull=False,
                )
                | (~Q(state="approved") & Q(approved_count=None)),
                name="an_approval_says_how_many",
            ),
            models.CheckConstraint(
                condition=Q(allocation=None) | Q(state="approved"),
                name="only_what_is_approved_is_allocated",
            ),
            models.CheckConstraint(
                condition=Q(approved_count=None)
                | Q(approved_count__lte=F("count"), approved_count__gte=1),
                name="nobody_is_given_more_than_was_asked",
            ),
            models.CheckConstraint(
                condition=Q(cut_to=None) | Q(cut_to__lt=F("count"), cut_to__gte=1),
                name="what_is_cut_is_fewer_than_was_asked",
            ),
            models.CheckConstraint(
                condition=Q(state="approved", approved_until__isnull=False)
                | (~Q(state="approved") & Q(approved_until=None)),
                name="an_approval_says_until_when",
            ),
            models.CheckConstraint(
                condition=_ends_in_its_time("approved_until", latest="lte"),
                name="nobody_is_given_longer_than_was_asked",
            ),
            models.CheckConstraint(
                condition=_ends_in_its_time("cut_until", latest="lt"),
                name="what_is_shortened_ends_earlier_than_was_asked",
            ),
        ]

    def __str__(self) -> str:
        return f"request {self.pk}"

    @property
    def reference(self) -> str:
        """What the log and the API call it."""
        return f"request-{self.pk}"

    @property
    def duration(self) -> timedelta:
        """For how long it is asked for, from its own begin on."""
        return self.until - (self.starts_at or self.created_at)

    @property
    def lapses(self) -> datetime:
        """When it lapses by itself: undecided, or unanswered while its requester has the turn."""
        return (
            (self.answer_by or self.until_now)
            if self.turn == self.Turn.REQUESTER
            else self.lapses_at
        )

    def why_not_granted(self, now: datetime) -> str:
        """Why the portal could not grant what may be granted, in words for its requester; empty where it could."""
        waits = self.state == State.WAITING and self.turn == self.Turn.APPROVER
        tried = self.not_granted_at
        lately = tried is not None and tried > now - REASON_SHOWN_FOR
        return self.not_granted_because if waits and lately else ""

    @property
    def why_orphaned(self) -> str:
        """Why who asked may not ask for it any more, so that it is granted to nobody, in a clause; empty else."""
        who = self.requester
        if not who.is_active:
            return f"{who.name} has no access to the portal any more"
        # A list asks for all of its rows at once.
        is_orphaned = getattr(self, "is_orphaned", None)
        if is_orphaned is None:
            is_orphaned = self.team_id not in who.team_ids and not who.may(
                Permission.ONBOARD_ANY_GROUP
            )
        return f"{who.name} is no longer of {self.team.name}" if is_orphaned else ""

    @property
    def why_closed(self) -> str:
        """Why nobody can approve it as things stand: it, its cluster or its kind of GPU is not offered; empty else."""
        place, flavor = self.tenancy, self.flavor
        closed = flavor.why_closed if flavor is not None else ""
        if flavor is None and place is not None:
            closed = place.cluster.why_closed
        if closed:
            return closed
        # A list asks for all of its rows at once.
        is_off = getattr(self, "is_off", None)
        if is_off is None:
            is_off = not setting_of(self.of).enabled
        return f"{self.of.name} is not offered here now" if is_off else ""

    @property
    def of(self) -> Offering:
        """What of the catalogue it is for."""
        return OFFERINGS[self.offering]

    @property
    def is_by_person(self) -> bool:
        """Whether a person makes it: as it was granted, or as it would be now."""
        return self.provisioner is Provisioner.MANUAL

    @property
    def is_in_azure(self) -> bool:
        """Whether the portal makes it in Azure, and deletes it there."""
        return self.provisioner in IN_AZURE

    @property
    def provisioner(self) -> Provisioner:
        """Who made it, or would make it now."""
        return (
            Provisioner(self.allocation.provisioner)
            if self.allocation
            else provisioner_of(self.of)
        )

    @property
    def arrival(self) -> Arrival:
        """How it gets to where it is used, unless a person makes it."""
        return arrival_by(
            self.provisioner, self.flavor.cluster if self.flavor else None
        )

    @property
    def asked(self) -> Spec:
        """The spec as a value."""
        return self.of.spec.model_validate(self.spec)

    def name(self, count: int | None = None, *, of: int = 0) -> str:
        """What is asked for, or as many of it as `count` says: "2 × A100", and `of` how many."""
        product = self.flavor.kind if self.flavor is not None else ""
        return self.of.title(
            self.asked, product=product, count=count or self.count, of=of
        )

    @property
    def whole_name(self) -> str:
        """All that is asked for, in a few words."""
        return self.name()

    @property
    def current_steps(self) -> list["Step"]:
        """The steps of what is asked now that are needed, in their order; asks nothing where they are at hand."""
        steps = [
            step for step in self.steps.all() if step.version == self.content_version
        ]
        return [step for step in steps if step.dropped_at is None]

    @property
    def count_now(self) -> int:
        """How many units it is about: those that were granted, else what the steps so far leave while it waits."""
        return self.approved_count or (self._waits and self.cut_to) or self.count

    @property
    def gpus_now(self) -> int:
        """How many GPUs those are."""
        return self.gpus // self.count * self.count_now

    @property
    def until_now(self) -> datetime:
        """Until when it is: the end that was granted, else what the steps so far leave of its time while it waits."""
        return self.approved_until or (self._waits and self.cut_until) or self.until

    @property
    def _waits(self) -> bool:
        return self.state == State.WAITING

    @property
    def is_shorter(self) -> bool:
        """Whether people have left less of its time than was asked for."""
        return self.until_now < self.until

    @property
    def is_less(self) -> bool:
        """Whether people have left less of it than was asked for: fewer units, or a shorter time."""
        return self.count_now < self.count or self.is_shorter

    @property
    def given_name(self) -> str:
        """What was granted, or is asked for while nothing is granted."""
        return self.name(self.approved_count)

    @property
    def granted_spec(self) -> dict[str, Any]:
        """What was granted, or is asked for while nothing is granted, as JSON."""
        return self.asked.fewer(self.approved_count or self.count)

    @property
    def spec_lines(self) -> list[tuple[str, Any]]:
        """The fields of that with their values, without where it is."""
        return [
            (name, value)
            for name, value in self.granted_spec.items()
            if name not in ("cluster", "region")
        ]

    @property
    def place(self) -> str:
        """Where, as programs name it: the cluster, or the region of what is on none."""
        if self.flavor is not None:
            return self.flavor.cluster.name
        return str(self.spec.get("cluster") or self.spec.get("region") or "")

    @property
    def where(self) -> str:
        """Where, as people read it: the title of the cluster, or the region of what is on none."""
        if self.flavor is not None:
            return self.flavor.cluster.title
        if not self.spec.get("cluster"):
            return self.place
        # A list asks for the titles of all of its rows at once; that of a cluster that is gone is None.
        title = getattr(self, "cluster_title", "")
        if title == "":
            named = Cluster.objects.filter(name=self.place)
            title = named.values_list("title", flat=True).first()
        return title or self.place


class Revision(models.Model):
    """What was asked in one version of a request; append-only, so that a change can be shown beside what it was."""

    request = models.ForeignKey(Request, models.PROTECT, related_name="revisions")
    number = models.PositiveIntegerField()
    spec = models.JSONField()
    count = models.PositiveIntegerField()
    until = models.DateTimeField()
    starts_at = models.DateTimeField(null=True)
    reason = models.TextField(blank=True)
    usd = models.DecimalField(max_digits=12, decimal_places=2)
    by = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, related_name="+")
    at = models.DateTimeField()

    class Meta:
        ordering = ["number"]
        constraints = [
            models.UniqueConstraint(
                fields=["request", "number"], name="a_version_is_written_once"
            )
        ]

    def __str__(self) -> str:
        return f"{self.request_id} version {self.number}"


class Evaluation(Row):
    """The policy's answer at one moment, with everything it looked at, so that it can be derived again."""

    request = models.ForeignKey(Request, models.PROTECT, related_name="evaluations")
    policy = models.ForeignKey(PolicyVersion, models.PROTECT, related_name="+")
    content_version = models.PositiveIntegerField()
    at = models.DateTimeField()
    outcome = models.CharField(
        max_length=12, choices=[(o.value, o.value) for o in Outcome]
    )
    answer = models.JSONField()
    # What would have made it automatic; null in what was judged before this was kept.
    remedies = models.JSONField(null=True)
    inputs = models.JSONField()
    input_hash = models.CharField(max_length=64)

    class Meta:
        ordering = ["id"]

    def __str__(self) -> str:
        return f"{self.request_id} {self.outcome}"


class StepQuerySet(models.QuerySet["Step"]):
    """Ways to look at steps."""

    def open(self) -> "StepQuerySet":
        """Waiting for somebody's decision now."""
        return self.undecided().filter(opened_at__isnull=False)

    def past_target(self, now: datetime) -> "StepQuerySet":
        """Open, and not decided by when they should be; the clock stops while the requester has the turn."""
        return self.open().filter(due_at__lte=now, paused_at=None)

    def undecided(self) -> "StepQuerySet":
        """Waiting for a decision now, or once the steps before are done."""
        return self.filter(done_at=None, dropped_at=None)

    def at(self, seats: Any) -> "StepQuerySet":
        """Those at one of these seats; once passed on, the next level's count too."""
        return self.filter(_at(seats))

    def of(self, user: User, seats: Any) -> "StepQuerySet":
        """Those at one of these seats, which are this person's, and those for which they stand in as one above.

        Who was named by somebody away stands in by that person's seat, for as long as it is lent.
        """
        theirs = Request.objects.filter(requester__managers__icontains=str(user.oid))
        # As a list of its own, which is read for nobody who stands in for nobody.
        above = Q(stand_in=user, request__in=theirs.order_by().values("pk"))
        return self.filter(_at(seats) | above)


def _at(seats: Any) -> Q:
    return Q(seat__in=seats) | Q(escalated_at__isnull=False, escalate_to__in=seats)


class Step(Row):
    """One seat that must decide, in its order, for one version of what is asked.

    While the requester has the turn `paused_at` is set and the three moments stand still.
    """

    request = models.ForeignKey(Request, models.PROTECT, related_name="steps")
    version = models.PositiveIntegerField()
    position = models.PositiveSmallIntegerField()
    seat = models.CharField(max_length=60)
    label = models.CharField(max_length=120)
    quorum = models.PositiveSmallIntegerField(default=1)
    plan = models.JSONField()  # hours until the reminder, the target and the escalation
    escalate_to = models.CharField(max_length=60)
    opened_at = models.DateTimeField(null=True)
    done_at = models.DateTimeField(null=True)
    dropped_at = models.DateTimeField(
        null=True
    )  # no longer needed: a new policy does not have it
    paused_at = models.DateTimeField(null=True)
    remind_at = models.DateTimeField(null=True)
    due_at = models.DateTimeField(null=True)
    escalate_at = models.DateTimeField(null=True)
    reminded_at = models.DateTimeField(null=True)
    escalated_at = models.DateTimeField(null=True)
    stand_in = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        models.PROTECT,
        null=True,
        related_name="stands_in_for",
    )

    objects = StepQuerySet.as_manager()

    class Meta:
        ordering = ["request_id", "version", "position"]
        indexes = [
            models.Index(
                fields=["remind_at"],
                condition=Q(done_at=None, opened_at__isnull=False),
                name="step_next_reminder",
            ),
            models.Index(
                fields=["request", "seat"],
                condition=Q(done_at=None),
                name="step_open_of_seat",
            ),
        ]
        constraints = [
            models.UniqueConstraint(
                fields=["request", "version", "position"], name="a_step_has_its_place"
            ),
            models.CheckConstraint(
                condition=Q(done_at=None) | Q(opened_at__isnull=False),
                name="a_step_is_opened_before_it_is_done",
            ),
            models.CheckConstraint(
                condition=Q(quorum__gte=1), name="somebody_decides_a_step"
            ),
            models.CheckConstraint(
                condition=Q(done_at=None) | Q(dropped_at=None),
                name="what_is_decided_is_not_dropped",
            ),
            models.CheckConstraint(
                condition=Q(opened_at=None)
                | Q(
                    remind_at__isnull=False,
                    due_at__isnull=False,
                    escalate_at__isnull=False,
                ),
                name="an_open_step_has_its_moments",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.request_id}.{self.position} {self.seat}"

    @property
    def words(self) -> str:
        """Who decides, in words."""
        return self.label


class Rerouting(models.Model):
    """What a policy that came into force changed about who decides a waiting request; append-only.

    With `refused`, the rule by which nobody may approve it as it stands, its route is as it was.
    """

    request = models.ForeignKey(Request, models.PROTECT, related_name="reroutings")
    policy = models.ForeignKey(PolicyVersion, models.PROTECT, related_name="+")
    evaluation = models.OneToOneField(
        Evaluation, models.PROTECT, related_name="rerouting"
    )
    content_version = models.PositiveIntegerField()
    at = models.DateTimeField()
    now_decide = models.JSONField()  # who decides from now on, in words, in order
    dropped = models.JSONField()  # whose decision is no longer needed, in words
    votes_stay = models.BooleanField(default=False)
    refused = models.TextField(blank=True)

    class Meta:
        ordering = ["id"]
        constraints = [
            models.UniqueConstraint(
                fields=["request", "content_version", "policy"],
                condition=Q(refused=""),
                name="a_policy_routes_a_request_once",
            ),
            models.UniqueConstraint(
                fields=["request", "content_version", "policy"],
                condition=~Q(refused=""),
                name="a_policy_refuses_a_request_once",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.request_id} by {self.policy}"


class DecisionQuerySet(TeamScopedQuerySet["Decision"]):
    """Ways to look at decisions."""

    team_path = "request__team_id"

    def granted_by_policy(self) -> "DecisionQuerySet":
        """What the policy alone has approved."""
        return self.filter(by=None, verdict=Decision.Verdict.APPROVE)

    def with_request(self) -> "DecisionQuerySet":
        """With what each was about, its people, and the `policy_number` by which it was judged, all in one query."""
        judged = Evaluation.objects.filter(
            request=OuterRef("request"),
            content_version=OuterRef("content_version"),
            at__lte=OuterRef("at"),
        ).order_by("-id")
        return self.select_related(
            "by",
            "seat_of",
            "step",
            "request__team",
            "request__requester",
            "request__flavor__cluster",
        ).annotate(policy_number=Subquery(judged.values("policy__number")[:1]))


class Decision(Row):
    """One verdict by a person or, without `by`, by the policy; append-only.

    `seat_of` is whose seat the person sat in: their own, or that of somebody they stand in for.
    """

    class Verdict(models.TextChoices):
        APPROVE = "approve", "approved"
        REJECT = "reject", "rejected"
        ASK = "ask", "asked"
        ANSWER = "answer", "answered"

    class Because(models.TextChoices):
        CAPACITY = "capacity", "Too few are free"
        BUDGET = "budget", "The money is not there"
        SMALLER = "smaller", "A smaller ask would do"
        OTHER = "other", "Something else"

    VOTES = (Verdict.APPROVE, Verdict.REJECT)

    request = models.ForeignKey(Request, models.PROTECT, related_name="decisions")
    requester = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.PROTECT, related_name="+"
    )
    by = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.PROTECT, null=True, related_name="decisions"
    )
    seat_of = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.PROTECT, null=True, related_name="+"
    )
    step = models.ForeignKey(Step, models.PROTECT, null=True, related_name="decisions")
    content_version = models.PositiveIntegerField()
    verdict = models.CharField(max_length=10, choices=Verdict.choices)
    count = models.PositiveIntegerField(null=True)
    until = models.DateTimeField(null=True)
    usd = models.DecimalField(max_digits=12, decimal_places=2, default=Decimal(0))
    because = models.CharField(max_length=12, choices=Because.choices, blank=True)
    reason = models.TextField(blank=True, max_length=2000)
    at = models.DateTimeField()

    objects = DecisionQuerySet.as_manager()

    @property
    def counts(self) -> bool:
        """Whether it is of what is asked now: a vote on an earlier version is void."""
        return self.content_version == self.request.content_version

    @property
    def by_words(self) -> str:
        """Who decided, and for whom where they stood in: "Ben Ruiz for Priya Raman"; the policy for nobody."""
        if self.by is None:
            return "The policy"
        if self.seat_of is None or self.seat_of_id == self.by_id:
            return self.by.name
        return f"{self.by.name} for {self.seat_of.name}"

    class Meta:
        ordering = ["at", "id"]
        constraints = [
            models.CheckConstraint(
                condition=~Q(by=F("requester")) | Q(verdict="answer") | Q(by=None),
                name="nobody_decides_their_own_request",
            ),
            models.CheckConstraint(
                condition=~Q(seat_of=F("requester")) | Q(seat_of=None),
                name="nobody_stands_in_for_the_requester",
            ),
            models.UniqueConstraint(
                fields=["request", "content_version", "step", "seat_of"],
                condition=Q(verdict__in=["approve", "reject"]),
                name="one_vote_per_seat",
            ),
            models.UniqueConstraint(
                fields=["request", "content_version", "by"],
                condition=Q(verdict__in=["approve", "reject"]),
                name="one_vote_per_person",
            ),
            models.CheckConstraint(
                condition=~Q(verdict="approve") | Q(count__isnull=False, count__gte=1),
                name="an_approving_vote_says_how_many",
            ),
            models.CheckConstraint(
                condition=~Q(verdict="approve") | Q(until__isnull=False),
                name="an_approving_vote_says_until_when",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.request_id} {self.verdict}"
