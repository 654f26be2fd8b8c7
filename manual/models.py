"""What people carry out."""

from django.conf import settings
from django.db import models
from django.db.models import Q

from accounts.models import Team
from accounts.teams import TeamScopedQuerySet
from provisioning.models import Tenancy
from ui.amounts import dated_moment
from web.rows import Row


class TaskQuerySet(TeamScopedQuerySet["Task"]):
    """Ways to look at tasks."""

    def unfinished(self) -> "TaskQuerySet":
        """Still to be done by somebody, whoever has it."""
        return self.filter(state__in=TO_BE_DONE)

    def of_request(self, number: int) -> "TaskQuerySet":
        """Those for what a request brought, the oldest first."""
        return self.filter(request_number=number).order_by("created_at", "pk")

    def described(self) -> "TaskQuerySet":
        """With everything that a line about them needs."""
        return self.select_related("assignee", "wanted_by", "team", "tenancy__cluster")


class Task(Row):
    """What a person carries out: taken by somebody, then done, or found impossible.

    One sets up what was granted, another one takes it down when its time is over; for a tenancy one makes the
    subscription that is to be the team's own. Once it is due whoever has it is reminded.
    """

    class Kind(models.TextChoices):
        SET_UP = "set_up", "Set up"
        TAKE_DOWN = "take_down", "Take down"
        SET_APART = "set_apart", "Make a subscription"

    class State(models.TextChoices):
        OPEN = "open", "To be taken"
        TAKEN = "taken", "Being carried out"
        DONE = "done", "Done"
        FAILED = "failed", "Could not be carried out"
        DROPPED = "dropped", "Not needed any more"

    team = models.ForeignKey(Team, models.PROTECT, related_name="tasks")
    # Who is told what became of it.
    wanted_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.PROTECT, related_name="+"
    )
    # Whose subscription is to be made.
    tenancy = models.ForeignKey(
        Tenancy, models.PROTECT, null=True, related_name="tasks"
    )
    # What it is about, as it was when it was asked for (manual.briefs.Brief).
    title = models.CharField(max_length=300)
    instruction = models.TextField()
    facts = models.JSONField(default=list)
    offering = models.CharField(max_length=20, blank=True)
    request_number = models.PositiveBigIntegerField(null=True)
    until = models.DateTimeField(null=True)

    kind = models.CharField(max_length=10, choices=Kind.choices, default=Kind.SET_UP)
    state = models.CharField(max_length=8, choices=State.choices, default=State.OPEN)
    assignee = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.PROTECT, null=True, related_name="tasks"
    )
    note = models.TextField(blank=True, max_length=2000)
    version = models.PositiveIntegerField(default=1)
    created_at = models.DateTimeField()
    due_at = models.DateTimeField(null=True)
    escalate_at = models.DateTimeField(null=True)
    reminded_at = models.DateTimeField(null=True)
    escalated_at = models.DateTimeField(null=True)
    taken_at = models.DateTimeField(null=True)
    done_at = models.DateTimeField(null=True)

    objects = TaskQuerySet.as_manager()

    class Meta:
        ordering = ["created_at", "id"]
        indexes = [
            models.Index(
                fields=["created_at"],
                condition=Q(state__in=["open", "taken"]),
                name="task_unfinished",
            )
        ]
        constraints = [
            models.UniqueConstraint(
                fields=["request_number", "kind"],
                name="a_request_has_one_task_of_a_kind",
            ),
            models.UniqueConstraint(
                fields=["tenancy"],
                condition=Q(state__in=["open", "taken"]),
                name="a_team_is_set_apart_once_at_a_time",
            ),
            models.CheckConstraint(
                condition=Q(kind__in=["set_up", "take_down"], tenancy=None)
                | Q(kind="set_apart", tenancy__isnull=False, request_number=None),
                name="a_task_is_of_a_known_kind",
            ),
            models.CheckConstraint(
                condition=Q(state="open", assignee=None)
                | Q(state="taken", assignee__isnull=False)
                | Q(
                    state__in=["done", "failed"],
                    assignee__isnull=False,
                    done_at__isnull=False,
                )
                | Q(state="dropped", done_at__isnull=False),
                name="a_task_is_somebodys_once_taken",
            ),
        ]

    def __str__(self) -> str:
        return self.words

    @property
    def words(self) -> str:
        """ "Set up a notebook with 1 × T4"."""
        return f"{self.get_kind_display()} {self.title}"

    @property
    def place(self) -> Tenancy:
        """The tenancy that it is carried out for; raises LookupError for a task that is for none."""
        if self.tenancy is None:
            raise LookupError(f"{self} is for no tenancy.")
        return self.tenancy

    @property
    def subject(self) -> tuple[str, int]:
        """What the audit log and notices say that it is about."""
        return (
            ("tenancy", self.place.pk)
            if self.request_number is None
            else ("request", self.request_number)
        )

    @property
    def is_over(self) -> bool:
        """Whether nothing is left to do."""
        return self.state in (self.State.DONE, self.State.FAILED, self.State.DROPPED)

    @property
    def whereabouts(self) -> list[tuple[str, str]]:
        """For whom and where it is done, as lines."""
        facts = [(label, value) for label, value in self.facts]
        return [("Team", self.team.name), *facts]

    @property
    def lines(self) -> list[tuple[str, str]]:
        """The task as lines: what, for whom, where, until when."""
        until = [("Until", dated_moment(self.until))] if self.until else []
        return [("To do", self.instruction), *self.whereabouts, *until]


TO_BE_DONE = (Task.State.OPEN, Task.State.TAKEN)
