"""What people and channels are told, what they want to be told, and how far each message has come."""

from datetime import datetime
from urllib.parse import urlsplit

from django.conf import settings
from django.db import connection, models
from django.db.models import Q
from django.db.models.functions import Lower

from notices.channels.events import SUBSCRIBABLE
from notices.kinds import (
    CHOOSABLE,
    TOLD_TO_CHANNELS,
    USUAL_HOUR,
    NoticeKind,
    Pace,
    Way,
)
from notices.message import Message
from notices.sealing import (
    BEGINNING,
    SECRETS,
    Unreadable,
    seal,
    unseal,
)
from web.rows import Row

PACES = [(pace.value, pace.words) for pace in Pace]
CHOOSABLE_KINDS = [(kind.value, kind.words) for kind in CHOOSABLE]
CHANNEL_KINDS = [(kind.value, kind.channel_words) for kind in TOLD_TO_CHANNELS]
WAYS = [(way.value, way.words) for way in Way]
CHAT_WAYS = [(way.value, way.words) for way in (Way.TEAMS, Way.SLACK)]
CHANNEL_WAYS = [*CHAT_WAYS, (Way.WEBHOOK.value, Way.WEBHOOK.words)]
WEBHOOK_EVENTS = [(event.value, event.words) for event in SUBSCRIBABLE]
# As plain texts: a migration that names them outlives the words of today.
ALL_PACES, ALL_WAYS, OF_CHANNELS = (
    [value for value, _ in known] for known in (PACES, WAYS, CHANNEL_WAYS)
)

WEBHOOK = Way.WEBHOOK.value
AT_ONCE, DIGEST = Pace.AT_ONCE.value, Pace.DIGEST.value
UNREADABLE = "no longer readable: give it again"
# What the check of a notice's foreign key takes at the commit, taken at once.
LASTING = "SELECT * FROM notices_channel WHERE enabled ORDER BY name FOR KEY SHARE SKIP LOCKED"
A_PATH = r"^/([^/\\]|$)"


def kinds() -> list[tuple[str, str]]:
    """Every kind with its words; as a function, so that a new one is no migration."""
    return [(kind.value, kind.words) for kind in NoticeKind]


class ChannelQuerySet(models.QuerySet["Channel"]):
    """Ways to look at channels."""

    def lasting(self) -> "list[Channel]":
        """Those that are switched on, and stay until the transaction ends; without one that is being removed.

        Nobody waits for anybody here: whoever tells them something may hold the audit chain already.
        """
        if connection.vendor != "postgresql":  # it has one writer at a time
            return list(self.filter(enabled=True))
        return list(self.raw(LASTING))


class Channel(models.Model):
    """A place in Teams or Slack, or a receiver of events; its address is a secret of which only host and end are shown.

    Teams and Slack are told `kinds` of notices, a webhook is told `events`, each signed with its secret and, for a day
    after that was rotated, with the one before as well. Nobody is shown a secret again.
    """

    name = models.CharField(max_length=60)
    way = models.CharField(max_length=10, choices=CHANNEL_WAYS)
    # Sealed (notices.sealing): `url` is what it says.
    sealed = models.TextField(db_column="url")
    kinds = models.JSONField(default=list)
    events = models.JSONField(default=list)
    # Sealed, too; empty but for a webhook.
    secret = models.TextField(blank=True, default="")
    former_secret = models.TextField(blank=True, default="")
    former_secret_until = models.DateTimeField(null=True)
    enabled = models.BooleanField(default=True)
    created_at = models.DateTimeField(auto_now_add=True)

    objects = ChannelQuerySet.as_manager()

    class Meta:
        ordering = ["name"]
        constraints = [
            models.UniqueConstraint(Lower("name"), name="channel_names_are_unique"),
            models.CheckConstraint(
                condition=Q(way__in=OF_CHANNELS), name="a_known_kind_of_channel"
            ),
            models.CheckConstraint(
                condition=Q(sealed__startswith=BEGINNING),
                name="a_channels_address_is_sealed",
            ),
            models.CheckConstraint(
                condition=Q(way=WEBHOOK, secret__startswith=BEGINNING)
                | (~Q(way=WEBHOOK) & Q(secret="")),
                name="a_webhook_has_a_sealed_secret",
            ),
            models.CheckConstraint(
                condition=Q(former_secret="", former_secret_until=None)
                | Q(
                    way=WEBHOOK,
                    former_secret__startswith=BEGINNING,
                    former_secret_until__isnull=False,
                ),
                name="a_former_secret_is_sealed_and_ends",
            ),
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def url(self) -> str:
        """The whole address, for sending only; raises Unreadable."""
        return unseal(self.sealed)

    @url.setter
    def url(self, url: str) -> None:
        self.sealed = seal(url)

    @property
    def address(self) -> str:
        """The host and the last four characters of the address, which is all that anybody sees of it."""
        try:
            url = self.url
        except Unreadable:
            return UNREADABLE
        return f"{urlsplit(url).hostname} …{url[-4:]}"

    def keys(self, now: datetime) -> list[str]:
        """The secrets to sign with, for sending only, the newest first; raises Unreadable."""
        sealed = [self.secret]
        if self.former_secret_until is not None and now < self.former_secret_until:
            sealed.append(self.former_secret)
        return [unseal(each, purpose=SECRETS) for each in sealed]


class Preference(models.Model):
    """How soon a person wants to be told about one kind; without a row the kind's default holds."""

    person = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.CASCADE, related_name="notice_preferences"
    )
    kind = models.CharField(max_length=30, choices=kinds)
    pace = models.CharField(max_length=10, choices=PACES)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["person", "kind"], name="one_preference_per_kind"
            ),
            models.CheckConstraint(
                condition=~Q(kind=""), name="a_preference_has_a_kind"
            ),
            models.CheckConstraint(
                condition=Q(pace__in=ALL_PACES), name="a_known_pace"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.person_id} {self.kind} {self.pace}"


class DigestHour(models.Model):
    """The hour (UTC) at which a person gets the daily mail."""

    person = models.OneToOneField(
        settings.AUTH_USER_MODEL, models.CASCADE, related_name="digest_hour"
    )
    hour = models.PositiveSmallIntegerField(default=USUAL_HOUR)

    class Meta:
        constraints = [
            models.CheckConstraint(condition=Q(hour__lte=23), name="a_day_has_24_hours")
        ]

    def __str__(self) -> str:
        return f"{self.hour}:00 UTC"


class Digest(models.Model):
    """One person's daily mail."""

    person = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.CASCADE, related_name="digests"
    )
    day = models.DateField()
    at = models.DateTimeField()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["person", "day"], name="one_digest_per_person_and_day"
            )
        ]

    def __str__(self) -> str:
        return f"digest of {self.day}"


class NoticeQuerySet(models.QuerySet["Notice"]):
    """Ways to look at notices."""

    def about(self, subject: tuple[str, int]) -> "NoticeQuerySet":
        """Those about one thing, such as ("request", 17)."""
        return self.filter(subject_type=subject[0], subject_id=subject[1])

    def for_digest(self, before: datetime) -> "NoticeQuerySet":
        """Those that wait for their person's next daily mail."""
        return self.filter(pace=DIGEST, digest=None, at__lte=before)


class Notice(Row):
    """One thing that one person or one channel is told; its text was fixed when it happened."""

    person = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.CASCADE, null=True, related_name="notices"
    )
    channel = models.ForeignKey(
        Channel, models.CASCADE, null=True, related_name="notices"
    )
    kind = models.CharField(max_length=30, choices=kinds)
    subject_type = models.CharField(max_length=30)
    subject_id = models.BigIntegerField()
    link = models.CharField(max_length=300)
    message = models.JSONField()
    # What a webhook is sent, its type and data as they were when it happened; null for everybody else.
    event = models.JSONField(null=True)
    pace = models.CharField(max_length=10, choices=PACES[:2])
    digest = models.ForeignKey(
        Digest, models.CASCADE, null=True, related_name="notices"
    )
    at = models.DateTimeField()

    objects = NoticeQuerySet.as_manager()

    class Meta:
        ordering = ["at", "id"]
        indexes = [
            models.Index(
                fields=["person", "at"],
                condition=Q(pace=DIGEST, digest=None),
                name="notice_for_digest",
            ),
            models.Index(fields=["at"], name="notice_by_age"),
        ]
        constraints = [
            models.CheckConstraint(
                condition=Q(person=None, channel__isnull=False)
                | Q(person__isnull=False, channel=None),
                name="a_notice_is_for_a_person_or_a_channel",
            ),
            models.CheckConstraint(condition=~Q(kind=""), name="a_notice_has_a_kind"),
            models.CheckConstraint(
                condition=Q(pace__in=[AT_ONCE, DIGEST]), name="a_notice_is_to_be_sent"
            ),
            models.CheckConstraint(
                condition=Q(digest=None) | Q(pace=DIGEST),
                name="a_digest_holds_what_may_wait",
            ),
            models.CheckConstraint(
                condition=Q(link__regex=A_PATH), name="a_notice_leads_into_the_portal"
            ),
            models.CheckConstraint(
                condition=Q(event__isnull=True) & ~Q(kind=NoticeKind.EVENT.value)
                | Q(event__isnull=False, channel__isnull=False),
                name="an_event_is_for_a_channel",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.subject_type} {self.subject_id}"

    @property
    def said(self) -> Message:
        """What it says."""
        return Message.from_json(self.message)


class DeliveryQuerySet(models.QuerySet["Delivery"]):
    """Ways to look at deliveries."""

    def due(self, now: datetime) -> "DeliveryQuerySet":
        """Those to be tried now; one that is being tried comes due again when its worker must have died."""
        return self.waiting().filter(next_at__lte=now)

    def waiting(self) -> "DeliveryQuerySet":
        """Those that are to be sent, due or not."""
        return self.filter(state=Delivery.State.WAITING)

    def not_by_mail(self) -> "DeliveryQuerySet":
        """Those that leave while no mail server is set."""
        return self.exclude(way=Way.EMAIL)

    def parked(self) -> "DeliveryQuerySet":
        """Those that were given up until somebody sends them again."""
        return self.filter(state=Delivery.State.PARKED)


class Delivery(Row):
    """A message on its way: one notice, or one daily mail, by one way."""

    class State(models.TextChoices):
        WAITING = "waiting", "Waiting"
        SENT = "sent", "Sent"
        PARKED = "parked", "Given up"

    notice = models.ForeignKey(
        Notice, models.CASCADE, null=True, related_name="deliveries"
    )
    digest = models.ForeignKey(
        Digest, models.CASCADE, null=True, related_name="deliveries"
    )
    way = models.CharField(max_length=10, choices=WAYS)
    state = models.CharField(
        max_length=10, choices=State.choices, default=State.WAITING
    )
    attempts = models.PositiveSmallIntegerField(default=0)
    next_at = models.DateTimeField()
    last_error = models.CharField(max_length=300, blank=True)
    sent_at = models.DateTimeField(null=True)

    objects = DeliveryQuerySet.as_manager()

    class Meta:
        indexes = [
            models.Index(
                fields=["next_at"], condition=Q(state="waiting"), name="delivery_is_due"
            ),
            models.Index(
                fields=["-id"], condition=Q(state="parked"), name="delivery_is_parked"
            ),
        ]
        constraints = [
            models.CheckConstraint(
                condition=Q(notice=None, digest__isnull=False)
                | Q(notice__isnull=False, digest=None),
                name="a_delivery_carries_one_thing",
            ),
            models.UniqueConstraint(
                fields=["notice", "way"], name="a_notice_goes_each_way_once"
            ),
            models.UniqueConstraint(
                fields=["digest", "way"], name="a_digest_goes_each_way_once"
            ),
            models.CheckConstraint(condition=Q(way__in=ALL_WAYS), name="a_known_way"),
            models.CheckConstraint(
                condition=Q(state="waiting", sent_at=None)
                | Q(state="sent", sent_at__isnull=False)
                | (Q(state="parked", sent_at=None) & ~Q(last_error="")),
                name="a_delivery_is_on_its_way_sent_or_parked",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.stable_id} by {self.way}"

    @property
    def stable_id(self) -> str:
        """The same at every attempt, so that a receiver can drop a message that came twice."""
        return (
            f"notice-{self.notice_id}" if self.notice_id else f"digest-{self.digest_id}"
        )
