"""What people carry out: a task for a request, or for a team's place."""

from typing import TYPE_CHECKING

from django.conf import settings
from django.db import models
from django.db.models import Q

if TYPE_CHECKING:
    from accounts.models import Team, User
    from approvals.models import Request
    from provisioning.models import Tenancy


class TaskQuerySet(models.QuerySet["Task"]):
    """Ways to look at tasks."""

    def unfinished(self) -> "TaskQuerySet":
        """Still to be done by somebody, whoever has it."""
        return self.filter(state__in=[Task.State.OPEN, Task.State.TAKEN])

    def described(self) -> "TaskQuerySet":
        """With everything that a line about them needs."""
        return self.select_related(
            "assignee",
            "request__team",
            "request__requester",
            "request__flavor__cluster",
            "tenancy__team",
            "tenancy__cluster",
            "wanted_by",
        )


class Task(models.Model):
    """What a person carries out: taken by somebody, then done, or found impossible.

    For an approved request one sets up what was asked for, and another one takes it down when its time is over. For a
    tenancy one makes the subscription that is to be the team's own. Once it is due whoever has it is reminded.
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

    request = models.ForeignKey("approvals.Request", models.PROTECT, null=True, related_name="tasks")
    tenancy = models.ForeignKey("provisioning.Tenancy", models.PROTECT, null=True, related_name="tasks")
    wanted_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, null=True, related_name="+")
    kind = models.CharField(max_length=10, choices=Kind.choices, default=Kind.SET_UP)
    state = models.CharField(max_length=8, choices=State.choices, default=State.OPEN)
    assignee = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, null=True, related_name="tasks")
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
                fields=["created_at"], condition=Q(state__in=["open", "taken"]), name="task_unfinished"
            )
        ]
        constraints = [
            models.UniqueConstraint(fields=["request", "kind"], name="a_request_has_one_task_of_a_kind"),
            models.UniqueConstraint(
                fields=["tenancy"],
                condition=Q(state__in=["open", "taken"]),
                name="a_team_is_set_apart_once_at_a_time",
            ),
            models.CheckConstraint(
                condition=Q(
                    kind__in=["set_up", "take_down"], request__isnull=False, tenancy=None, wanted_by=None
                )
                | Q(kind="set_apart", request=None, tenancy__isnull=False, wanted_by__isnull=False),
                name="a_task_is_of_a_known_kind",
            ),
            models.CheckConstraint(
                condition=Q(state="open", assignee=None)
                | Q(state="taken", assignee__isnull=False)
                | Q(state__in=["done", "failed"], assignee__isnull=False, done_at__isnull=False)
                | Q(state="dropped", done_at__isnull=False),
                name="a_task_is_somebodys_once_taken",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.kind} of {self.request_id or self.tenancy_id}"

    @property
    def asked(self) -> "Request":
        """The request that it is carried out for; raises LookupError for a task that is for a tenancy."""
        if self.request is None:
            raise LookupError(f"{self} is for no request.")
        return self.request

    @property
    def place(self) -> "Tenancy":
        """The tenancy that it is carried out for; raises LookupError for a task that is for a request."""
        if self.tenancy is None:
            raise LookupError(f"{self} is for no tenancy.")
        return self.tenancy

    @property
    def team(self) -> "Team":
        """Whose it is."""
        return self.place.team if self.request is None else self.request.team

    @property
    def asker(self) -> "User":
        """Who wants it, and is told what became of it."""
        return self.asked.requester if self.wanted_by is None else self.wanted_by

    @property
    def is_over(self) -> bool:
        """Whether nothing is left to do."""
        return self.state in (self.State.DONE, self.State.FAILED, self.State.DROPPED)
