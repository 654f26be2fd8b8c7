"""What happened: append-only, numbered without gaps, each event holding the hash of the one before."""

from collections.abc import Collection, Iterable, Iterator
from typing import Any, Self

from django.db import models

from audit import chain
from audit.events import Kind


def kinds() -> list[tuple[str, str]]:
    """Every kind with its words; as a function, so that a new one is no migration."""
    return Kind.choices


class EventQuerySet(models.QuerySet["Event"]):
    """Ways to look at events; there is no way to change them."""

    def visible_to_teams(self, team_ids: Collection[int] | None) -> Self:
        """Events of these teams; None means every event there is."""
        return self if team_ids is None else self.filter(team_id__in=team_ids)

    def about(self, subject: str, pk: object) -> Self:
        """Events whose subject is this object."""
        return self.filter(subject_type=subject, subject_id=str(pk))


class Event(models.Model):
    """One thing that happened, who did it and to what; a database trigger refuses UPDATE and DELETE."""

    class Outcome(models.TextChoices):
        DONE = "done", "done"
        REFUSED = "refused", "refused"

    seq = models.BigIntegerField(primary_key=True)
    at = models.DateTimeField(db_index=True)
    kind = models.CharField(max_length=60, choices=kinds)
    outcome = models.CharField(
        max_length=10, choices=Outcome.choices, default=Outcome.DONE
    )
    actor_kind = models.CharField(max_length=20)
    actor_id = models.CharField(max_length=64, blank=True)
    actor_name = models.CharField(max_length=200)
    team_id = models.BigIntegerField(null=True, db_index=True)
    subject_type = models.CharField(max_length=30, blank=True)
    subject_id = models.CharField(max_length=64, blank=True)
    details = models.JSONField(default=dict)
    request_id = models.CharField(max_length=64, blank=True)
    previous = models.CharField(max_length=64)
    hash = models.CharField(max_length=64)

    objects = EventQuerySet.as_manager()

    class Meta:
        ordering = ["-seq"]
        indexes = [
            models.Index(
                fields=["subject_type", "subject_id", "-seq"], name="event_subject"
            )
        ]
        constraints = [
            # No list of kinds: each new one would write the constraint anew, on the largest table there is.
            models.CheckConstraint(
                condition=~models.Q(kind=""), name="an_event_has_a_kind"
            ),
            models.CheckConstraint(
                condition=models.Q(seq__gte=1), name="events_are_numbered_from_one"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.seq} {self.kind}"

    @property
    def words(self) -> str:
        """The kind in words, as it follows the actor's name; as it is stored where a newer release wrote it."""
        return str(Kind(self.kind).label) if self.kind in Kind.values else self.kind

    def body(self) -> dict[str, Any]:
        """What the hash covers."""
        return {
            "at": self.at.isoformat(),
            "kind": self.kind,
            "outcome": self.outcome,
            "actor": [self.actor_kind, self.actor_id, self.actor_name],
            "team": self.team_id,
            "subject": [self.subject_type, self.subject_id],
            "details": self.details,
            "request": self.request_id,
        }

    def link(self) -> chain.Link:
        """This event as a link of the chain."""
        return chain.Link(
            seq=self.seq, body=self.body(), previous=self.previous, hash=self.hash
        )

    def save(self, *args: Any, **kwargs: Any) -> None:
        """Insert once; a second save is refused before the database refuses it."""
        if not self._state.adding:
            raise TypeError("Audit events are never changed.")
        super().save(*args, **kwargs)

    def delete(self, *args: Any, **kwargs: Any) -> tuple[int, dict[str, int]]:
        """Always refused."""
        raise TypeError("Audit events are never deleted.")


class Head(models.Model):
    """The newest event's number and hash; its row lock puts writers in line, so numbers have no gaps."""

    id = models.PositiveSmallIntegerField(primary_key=True, default=1)
    seq = models.BigIntegerField(default=0)
    hash = models.CharField(max_length=64, default=chain.GENESIS)

    class Meta:
        constraints = [
            models.CheckConstraint(condition=models.Q(id=1), name="there_is_one_head")
        ]

    def __str__(self) -> str:
        return str(self.seq)


class Anchor(models.Model):
    """The head of one day, signed, and where copies of it were left: whoever rewrites the log does not reach those."""

    day = models.DateField(primary_key=True)
    seq = models.BigIntegerField()
    text = models.TextField()
    mailed_at = models.DateTimeField(null=True)
    stored_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["day"]
        constraints = [
            models.CheckConstraint(
                condition=models.Q(seq__gte=1), name="an_anchor_holds_an_event"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.day} event {self.seq}"


class RefusalCount(models.Model):
    """How many calls of one person were refused in a day that touched nothing and are therefore no events."""

    day = models.DateField()
    actor_id = models.CharField(max_length=64)
    actor_name = models.CharField(max_length=200)
    status = models.PositiveSmallIntegerField()
    count = models.PositiveBigIntegerField(default=1)

    class Meta:
        ordering = ["-day", "-count", "id"]
        constraints = [
            models.UniqueConstraint(
                fields=["actor_id", "day", "status"],
                name="one_count_per_person_day_and_status",
            ),
            models.CheckConstraint(
                condition=models.Q(count__gte=1),
                name="a_refusal_count_counts_something",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.count} × {self.status}"


def links(*, batch: int = 2000) -> Iterator[chain.Link]:
    """Every event as a link, oldest first, without holding them all."""
    for event in Event.objects.order_by("seq").iterator(chunk_size=batch):
        yield event.link()


def verify(*, known: Iterable[chain.Checkpoint] = ()) -> chain.Verdict:
    """Walk the whole log, and compare it with its head and with what else is known of it."""
    # The head first: what is written meanwhile is newer.
    head = Head.objects.filter(pk=1, seq__gt=0).values_list("seq", "hash").first()
    return chain.verify(
        links(), known=[*known, *([chain.Checkpoint(*head)] if head else [])]
    )
