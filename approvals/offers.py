"""The catalogue as this installation runs it, and the tasks that people carry out for it."""

from django.conf import settings
from django.db import models
from django.db.models import Q

from approvals.catalogue import CHOICES, OFFERINGS, Gate


class OfferingSetting(models.Model):
    """How an offering is offered here: on or off, at which gate, in which place, at which prices."""

    key = models.CharField(max_length=20, unique=True, choices=CHOICES)
    enabled = models.BooleanField(default=True)
    gate = models.CharField(max_length=12, choices=[(gate.value, gate.words) for gate in Gate])
    position = models.PositiveSmallIntegerField()
    prices = models.JSONField(default=dict)

    class Meta:
        ordering = ["position", "key"]
        constraints = [
            models.CheckConstraint(condition=Q(key__in=list(OFFERINGS)), name="an_offering_is_known"),
            models.CheckConstraint(
                condition=Q(gate__in=[gate.value for gate in Gate]), name="an_offering_has_a_known_gate"
            ),
        ]

    def __str__(self) -> str:
        return self.key


class TaskQuerySet(models.QuerySet["Task"]):
    """Ways to look at tasks."""

    def unfinished(self) -> "TaskQuerySet":
        """Still to be done by somebody, whoever has it."""
        return self.filter(state__in=[Task.State.OPEN, Task.State.TAKEN])


class Task(models.Model):
    """What a person carries out for an approved request: taken by somebody, then done, or found impossible.

    One sets up what was asked for; when its time is over another one takes it down.
    """

    class Kind(models.TextChoices):
        SET_UP = "set_up", "Set up"
        TAKE_DOWN = "take_down", "Take down"

    class State(models.TextChoices):
        OPEN = "open", "To be taken"
        TAKEN = "taken", "Being carried out"
        DONE = "done", "Done"
        FAILED = "failed", "Could not be carried out"
        DROPPED = "dropped", "Not needed any more"

    request = models.ForeignKey("approvals.Request", models.PROTECT, related_name="tasks")
    kind = models.CharField(max_length=10, choices=Kind.choices, default=Kind.SET_UP)
    state = models.CharField(max_length=8, choices=State.choices, default=State.OPEN)
    assignee = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, null=True, related_name="tasks")
    note = models.TextField(blank=True, max_length=2000)
    version = models.PositiveIntegerField(default=1)
    created_at = models.DateTimeField()
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
            models.CheckConstraint(
                condition=Q(kind__in=["set_up", "take_down"]), name="a_task_is_of_a_known_kind"
            ),
            models.CheckConstraint(
                condition=Q(state="open", assignee=None) | Q(state="taken", assignee__isnull=False)
                | Q(state__in=["done", "failed"], assignee__isnull=False, done_at__isnull=False)
                | Q(state="dropped", done_at__isnull=False),
                name="a_task_is_somebodys_once_taken",
            ),
        ]  # fmt: skip

    def __str__(self) -> str:
        return f"{self.kind} of {self.request_id}"

    @property
    def is_over(self) -> bool:
        """Whether nothing is left to do."""
        return self.state in (self.State.DONE, self.State.FAILED, self.State.DROPPED)
