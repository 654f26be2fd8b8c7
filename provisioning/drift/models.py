"""What was found on clusters that is not as it was made, and what became of it."""

import hashlib
import json
from datetime import datetime

from django.conf import settings
from django.db import models
from django.db.models import Q

from accounts.teams import TeamScopedQuerySet
from fleet.models import Cluster
from provisioning.drift.comparing import What
from provisioning.drift.words import changes, sentence

KINDS_OF_DRIFT = [(what.value, what.value.capitalize()) for what in What]

# The type of the condition that a tenancy has while something of it differs.
DRIFTED = "Drifted"


class DriftQuerySet(TeamScopedQuerySet["Drift"]):
    """Ways to look at drift."""

    team_path = "tenancy__team"

    def open(self) -> "DriftQuerySet":
        """What differs now and nobody has dealt with."""
        return self.filter(state=Drift.State.OPEN)

    def waiting_for_lead(self) -> "DriftQuerySet":
        """What nobody puts right until a platform lead decides."""
        asks = Q(tenancy__cluster__on_drift=Cluster.OnDrift.ASK) | Q(
            tenancy__cluster__braked_at__isnull=False
        )
        return self.open().filter(asks | Q(contested=True), repair_asked_at=None)

    def standing(self, now: datetime) -> "DriftQuerySet":
        """What a pass has to know: open, or left alone until a time that has not come."""
        return self.filter(
            Q(state=Drift.State.OPEN)
            | Q(state=Drift.State.IGNORED, ignored_until__gt=now)
        )

    def counting(self, cluster: Cluster, *, since: datetime) -> "DriftQuerySet":
        """What the brake counts: repaired by the portal since then, or about to be; nothing that a lead asked for."""
        repaired = Q(state=Drift.State.REPAIRED, begun_at__gte=since)
        rows = self.filter(
            Q(state=Drift.State.OPEN) | repaired, tenancy__cluster=cluster
        )
        return rows.filter(counts=True, contested=False, repair_asked_at=None)


class Drift(models.Model):
    """One object of a tenancy that is not as it was made. `fields` holds each difference: path, wanted, live, who.

    `who` is the field manager that the cluster names, empty when it names none; `since` the time it names, else when
    it was first seen.
    """

    class State(models.TextChoices):
        OPEN = "open", "Differs"
        REPAIRED = "repaired", "Put right"
        ADOPTED = "adopted", "Taken over"
        IGNORED = "ignored", "Left alone"

    tenancy = models.ForeignKey(
        "provisioning.Tenancy", models.CASCADE, related_name="drifts"
    )
    kind = models.CharField(max_length=60)
    namespace = models.CharField(max_length=63, blank=True)
    name = models.CharField(max_length=253)
    what = models.CharField(max_length=10, choices=KINDS_OF_DRIFT)
    fields = models.JSONField(default=list)
    who = models.CharField(max_length=200, blank=True)
    operation = models.CharField(max_length=10, blank=True)
    since = models.DateTimeField()
    first_seen_at = models.DateTimeField()

    state = models.CharField(max_length=10, choices=State.choices, default=State.OPEN)
    # Somebody changes it back each time: it waits for a lead, whatever the cluster's rule is.
    contested = models.BooleanField(default=False)
    # False once a lead has looked: the brake does not stop for the same again.
    counts = models.BooleanField(default=True)
    begun_at = models.DateTimeField(null=True)
    repair_asked_at = models.DateTimeField(null=True)
    repair_asked_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.PROTECT, null=True, related_name="+"
    )
    ended_at = models.DateTimeField(null=True)
    ended_by = models.CharField(max_length=200, blank=True)
    reason = models.CharField(max_length=500, blank=True)
    ignored_until = models.DateTimeField(null=True)

    objects = DriftQuerySet.as_manager()

    class Meta:
        ordering = ["-first_seen_at", "-id"]
        indexes = [
            models.Index(fields=["state", "-first_seen_at"], name="drift_newest")
        ]
        constraints = [
            models.UniqueConstraint(
                fields=["tenancy", "kind", "namespace", "name"],
                condition=Q(state="open"),
                name="an_object_drifts_once_at_a_time",
            ),
            models.CheckConstraint(
                condition=Q(what__in=["changed", "missing", "left over"]),
                name="a_known_kind_of_drift",
            ),
            models.CheckConstraint(
                condition=Q(state="open", ended_at=None, ended_by="")
                | (
                    Q(
                        state__in=["repaired", "adopted", "ignored"],
                        ended_at__isnull=False,
                    )
                    & ~Q(ended_by="")
                ),
                name="drift_that_is_over_was_ended_by_somebody",
            ),
            models.CheckConstraint(
                condition=(
                    Q(state="ignored", ignored_until__gt=models.F("ended_at"))
                    & ~Q(reason="")
                )
                | (~Q(state="ignored") & Q(ignored_until=None)),
                name="what_is_left_alone_has_a_reason_and_an_end",
            ),
            models.CheckConstraint(
                condition=Q(repair_asked_at=None, repair_asked_by=None)
                | Q(repair_asked_at__isnull=False, repair_asked_by__isnull=False),
                name="a_repair_is_asked_for_by_somebody",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.name}: {self.what}"

    @property
    def content(self) -> str:
        """What tells one set of differing fields from another: who takes them over says which they saw."""
        return hashlib.sha256(
            json.dumps(self.fields, sort_keys=True).encode()
        ).hexdigest()[:16]

    @property
    def place(self) -> tuple[str, str, str]:
        """Which object of the tenancy it is."""
        return self.kind, self.namespace, self.name

    @property
    def sentence(self) -> str:
        """Who changed what, in words and without the time."""
        return sentence(
            what=self.what,
            kind=self.kind,
            name=self.name,
            fields=self.fields,
            who=self.who,
        )

    @property
    def changes(self) -> list[dict[str, str | None]]:
        """The differences as a table: path, before, after; None where it is absent."""
        return changes(self.fields)

    @property
    def is_open(self) -> bool:
        """Whether it differs and nobody has dealt with it."""
        return self.state == self.State.OPEN
