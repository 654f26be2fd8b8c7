"""The catalogue as this installation runs it, and the tasks that people carry out for it."""

from django.conf import settings
from django.db import models
from django.db.models import Q

from approvals.catalogue import OFFERINGS, Gate


class OfferingSetting(models.Model):
    """How an offering is offered here: on or off, at which gate, in which place, at which prices."""

    key = models.CharField(max_length=20, unique=True, choices=[(o.key, o.name) for o in OFFERINGS.values()])
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


class Task(models.Model):
    """What a person carries out for an approved request: taken by somebody, then done, or found impossible."""

    class State(models.TextChoices):
        OPEN = "open", "To be taken"
        TAKEN = "taken", "Being carried out"
        DONE = "done", "Done"
        FAILED = "failed", "Could not be carried out"

    request = models.OneToOneField("approvals.Request", models.PROTECT, related_name="task")
    state = models.CharField(max_length=8, choices=State.choices, default=State.OPEN)
    assignee = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, null=True, related_name="tasks")
    note = models.TextField(blank=True, max_length=2000)
    version = models.PositiveIntegerField(default=1)
    created_at = models.DateTimeField()
    taken_at = models.DateTimeField(null=True)
    done_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["created_at", "id"]
        constraints = [
            models.CheckConstraint(
                condition=Q(state="open", assignee=None) | Q(state="taken", assignee__isnull=False)
                | Q(state__in=["done", "failed"], assignee__isnull=False, done_at__isnull=False),
                name="a_task_is_somebodys_once_taken",
            ),
        ]  # fmt: skip

    def __str__(self) -> str:
        return f"task of {self.request_id}"
