"""JupyterHubs that the portal works with, and the names by which they know people."""

from datetime import datetime
from enum import StrEnum

from django.conf import settings
from django.db import models
from django.db.models import F, Q

from fleet.models import Cluster
from notebooks.profiles.idle import Reclaim


class HubQuerySet(models.QuerySet["Hub"]):
    """Ways to look at hubs."""

    def due(self, now: datetime) -> "HubQuerySet":
        """Those to observe now."""
        return self.filter(next_look_at__lte=now)

    def locked(self) -> "HubQuerySet":
        """Locked until the transaction ends: after notebooks and before the audit chain."""
        return self.select_for_update(of=("self",), no_key=True)


class Hub(models.Model):
    """The JupyterHub of a cluster. Its token stays in a file that is only named here."""

    cluster = models.OneToOneField(
        Cluster, models.PROTECT, primary_key=True, related_name="hub"
    )
    # Such as https://hub.example.com; the REST API is at /hub/api below it.
    address = models.CharField(max_length=300)
    # Where people open it, where that is another one, such as behind a gateway; the portal never calls it.
    public_address = models.CharField(max_length=300, blank=True, default="")
    # By what the hub takes the portal for its service, in the folder QM_HUB_CREDENTIALS_DIR.
    token_file = models.CharField(max_length=200)
    # By what the portal knows the hub: qmh_<prefix>_<secret>, of which only the SHA-256 is kept. Empty: none was made.
    key_prefix = models.CharField(max_length=12, blank=True, default="")
    key_digest = models.CharField(max_length=64, blank=True, default="")
    key_made_at = models.DateTimeField(null=True)
    reclaim = models.CharField(
        max_length=4,
        choices=[(each.value, each.words) for each in Reclaim],
        default=Reclaim.OFF,
    )

    # What was observed last, None before that: whether the portal can work with it, and why not.
    version = models.CharField(max_length=40, blank=True, default="")
    reachable = models.BooleanField(null=True)
    message = models.CharField(max_length=600, blank=True, default="")
    looked_at = models.DateTimeField(null=True)
    # Times in a row at which the portal could not work with it, and when it is observed again.
    failures = models.PositiveSmallIntegerField(default=0)
    next_look_at = models.DateTimeField()
    # Since when and until when it has said without a gap how its servers are used; None before it did.
    followed_since = models.DateTimeField(null=True)
    followed_at = models.DateTimeField(null=True)

    objects = HubQuerySet.as_manager()

    class Meta:
        ordering = ["cluster__name"]
        constraints = [
            models.UniqueConstraint(
                fields=["address"], name="a_hub_belongs_to_one_cluster"
            ),
            models.CheckConstraint(
                condition=Q(address__regex=r"^https://[^/]"),
                name="a_hub_is_called_over_https",
            ),
            models.CheckConstraint(
                condition=Q(public_address="")
                | Q(public_address__regex=r"^https?://[^/]"),
                name="a_hub_is_opened_by_browsers",
            ),
            models.CheckConstraint(
                condition=~Q(token_file=""), name="a_hub_has_a_token"
            ),
            models.CheckConstraint(
                condition=Q(key_prefix="", key_digest="", key_made_at=None)
                | (
                    ~Q(key_prefix="") & ~Q(key_digest="") & Q(key_made_at__isnull=False)
                ),
                name="a_hub_key_is_kept_whole",
            ),
            models.UniqueConstraint(
                fields=["key_prefix"],
                condition=~Q(key_prefix=""),
                name="a_hub_key_opens_one_hub",
            ),
            models.CheckConstraint(
                condition=Q(reclaim__in=[each.value for each in Reclaim]),
                name="a_hub_reclaims_in_a_known_way",
            ),
            models.CheckConstraint(
                condition=Q(
                    looked_at=None, reachable=None, message="", version="", failures=0
                )
                # What cannot be said of NULL counts as held.
                | Q(
                    looked_at__isnull=False,
                    reachable__isnull=False,
                    reachable=True,
                    failures=0,
                )
                | (
                    Q(
                        looked_at__isnull=False,
                        reachable__isnull=False,
                        reachable=False,
                        failures__gte=1,
                    )
                    & ~Q(message="")
                ),
                name="a_hub_is_away_for_a_reason",
            ),
            models.CheckConstraint(
                condition=Q(followed_since=None, followed_at=None)
                # What cannot be said of NULL counts as held.
                | Q(
                    followed_since__isnull=False,
                    followed_at__isnull=False,
                    followed_at__gte=F("followed_since"),
                ),
                name="a_followed_hub_says_since_when",
            ),
        ]

    def __str__(self) -> str:
        return self.address

    @property
    def opened_at(self) -> str:
        """Where people open it."""
        return self.public_address or self.address


class UnknownReason(StrEnum):
    """Why the portal does not take a hub's server in."""

    PERSON = "person"
    PROFILE = "profile"

    @property
    def words(self) -> str:
        """As a sentence for platform leads, with what to do."""
        return {
            "person": "The portal knows nobody by this name. Ask them to sign in to the portal once, or have the hub "
            "tell their object id.",
            "profile": "It was started from no profile that the portal offers there. Stop it in the hub, and have its "
            "person launch it from a profile.",
        }[self.value]


class UnknownServer(models.Model):
    """A server that runs in a hub and that the portal does not take in: it neither counts nor stops it."""

    hub = models.ForeignKey(Hub, models.CASCADE, related_name="unknown_servers")
    username = models.CharField(max_length=255)
    # Empty for the account's unnamed one.
    name = models.CharField(max_length=255, blank=True)
    reason = models.CharField(
        max_length=7,
        choices=[(each.value, each.value.capitalize()) for each in UnknownReason],
    )
    # When the hub started it, or when the portal saw it first.
    since = models.DateTimeField()

    class Meta:
        ordering = ["hub", "username", "name"]
        constraints = [
            models.UniqueConstraint(
                fields=["hub", "username", "name"],
                name="an_unknown_server_is_kept_once",
            ),
            models.CheckConstraint(
                condition=Q(reason__in=[each.value for each in UnknownReason]),
                name="an_unknown_server_is_unknown_for_a_known_reason",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.username} {self.name}"

    @property
    def words(self) -> str:
        """Why it is not taken in, and what to do."""
        return UnknownReason(self.reason).words


class HubAccount(models.Model):
    """By which name a hub knows a person: as the hub told it, never guessed from a name."""

    hub = models.ForeignKey(Hub, models.CASCADE, related_name="accounts")
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.CASCADE, related_name="hub_accounts"
    )
    username = models.CharField(max_length=255)
    first_seen_at = models.DateTimeField()

    class Meta:
        ordering = ["hub", "username"]
        constraints = [
            models.UniqueConstraint(
                fields=["hub", "user"], name="a_person_has_one_name_on_a_hub"
            ),
            models.UniqueConstraint(
                fields=["hub", "username"], name="a_name_on_a_hub_is_of_one_person"
            ),
            models.CheckConstraint(
                condition=~Q(username=""), name="a_hub_account_has_a_name"
            ),
        ]

    def __str__(self) -> str:
        return self.username
