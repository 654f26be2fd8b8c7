"""Accounts of Azure OpenAI and the models in them, as the portal keeps them: what is wanted, and what Azure said."""

from django.db import models
from django.db.models import F, Q

from accounts.models import Team
from accounts.teams import TeamScopedQuerySet
from capacity.openai.naming import GLOBAL, STANDARD, deployment_name
from capacity.openai.states import IN_AZURE, WANTED, State
from capacity.subscriptions.models import Subscription
from reconciling.models import Reconciled, ReconciledQuerySet
from web.rows import Row

IS_WANTED = Q(state__in=sorted(WANTED))
STATES = [(each.value, each.words) for each in State]


class ModelAccountQuerySet(ReconciledQuerySet["ModelAccount"]):
    """Ways to look at accounts."""

    def wanted_now(self) -> "ModelAccountQuerySet":
        """Those that are there, or are to be."""
        return self.filter(state__in=sorted(WANTED))

    def in_azure(self) -> "ModelAccountQuerySet":
        """Those of which Azure has something, or may have."""
        return self.filter(state__in=sorted(IN_AZURE))


class ModelAccount(Row, Reconciled):
    """A team's account of Azure OpenAI in a region, under a name in Azure that follows from its number.

    It is there while a model in it is wanted. Azure lets a subscription have 30 of them in a region, so that there is
    one for all models of a team. `group` is the Entra group that may call them as far as Azure was told, None for none.
    `operation` is Azure's long operation that is under way: {"step", "token", "since", "about", "capacity"}.
    """

    team = models.ForeignKey(Team, models.PROTECT, related_name="model_accounts")
    subscription = models.CharField(max_length=36)
    resource_group = models.CharField(max_length=90)
    region = models.CharField(max_length=40)
    state = models.CharField(max_length=10, choices=STATES, default=State.PENDING)
    message = models.CharField(max_length=600, blank=True, default="")
    # Of which platform leads were told that Azure does not let the portal do it.
    blocked_generation = models.PositiveIntegerField(null=True)
    operation = models.JSONField(null=True)
    group = models.UUIDField(null=True)
    # Where its models are called, whether from anywhere, and whether with keys; all as Azure said last.
    endpoint = models.CharField(max_length=200, blank=True, default="")
    is_open = models.BooleanField(default=False)
    has_keys = models.BooleanField(default=False)
    created_at = models.DateTimeField()
    ready_at = models.DateTimeField(null=True)
    deleted_at = models.DateTimeField(null=True)
    seen_at = models.DateTimeField(null=True)

    objects = ModelAccountQuerySet.as_manager()

    class Meta(Reconciled.Meta):
        ordering = ["-id"]
        indexes = [
            models.Index(
                fields=["requeue_at"],
                condition=~Q(state=State.DELETED),
                name="model_account_is_due",
            ),
        ]
        constraints = [
            *Reconciled.Meta.constraints,
            models.UniqueConstraint(
                fields=["team", "subscription", "region"],
                condition=IS_WANTED,
                name="a_team_has_one_model_account_in_a_region",
            ),
            models.CheckConstraint(
                condition=Q(state__in=[each.value for each in State]),
                name="a_model_account_is_in_a_known_state",
            ),
            models.CheckConstraint(
                condition=~Q(state=State.READY)
                | (Q(ready_at__isnull=False) & ~Q(endpoint="")),
                name="a_model_account_that_is_ready_has_an_address",
            ),
            models.CheckConstraint(
                condition=Q(
                    state=State.DELETED,
                    deleted_at__isnull=False,
                    operation=None,
                    group=None,
                )
                | Q(~Q(state=State.DELETED), deleted_at=None),
                name="nobody_may_call_a_deleted_model_account",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.team_id} in {self.region}"


class ModelEndpointQuerySet(TeamScopedQuerySet["ModelEndpoint"]):
    """Ways to look at model endpoints."""

    def wanted_now(self) -> "ModelEndpointQuerySet":
        """Those that are there, or are to be."""
        return self.filter(state__in=sorted(WANTED))

    def described(self) -> "ModelEndpointQuerySet":
        """With everything that a line about them needs."""
        return self.select_related("team", "account")


class ModelEndpoint(Row):
    """A model that a team may call: a deployment in its account, with a ceiling of tokens a minute.

    `capacity` is what all that was granted for it adds up to, in thousands of tokens a minute; `held` is what Azure has
    of it. What Azure refused for good stands in `refusal` beside the capacity that it refused: what was granted last
    for that fails.
    """

    team = models.ForeignKey(Team, models.PROTECT, related_name="model_endpoints")
    account = models.ForeignKey(ModelAccount, models.PROTECT, related_name="endpoints")
    model = models.CharField(max_length=60)
    # What the region offers by default when it is deployed first; empty before that.
    version = models.CharField(max_length=40, blank=True, default="")
    sku = models.CharField(
        max_length=20, choices=[(STANDARD, "Standard"), (GLOBAL, "Global Standard")]
    )
    capacity = models.PositiveIntegerField()
    held = models.PositiveIntegerField(default=0)
    state = models.CharField(max_length=10, choices=STATES, default=State.PENDING)
    refusal = models.CharField(max_length=600, blank=True, default="")
    refused_capacity = models.PositiveIntegerField(null=True)
    created_at = models.DateTimeField()
    ready_at = models.DateTimeField(null=True)
    deleted_at = models.DateTimeField(null=True)

    objects = ModelEndpointQuerySet.as_manager()

    class Meta:
        ordering = ["-id"]
        indexes = [models.Index(fields=["team", "-id"], name="model_endpoint_of_team")]
        constraints = [
            models.UniqueConstraint(
                fields=["account", "model", "sku"],
                condition=IS_WANTED,
                name="a_model_is_deployed_once_in_an_account",
            ),
            models.CheckConstraint(
                condition=Q(state__in=[each.value for each in State]),
                name="a_model_endpoint_is_in_a_known_state",
            ),
            models.CheckConstraint(
                condition=Q(sku__in=[STANDARD, GLOBAL]),
                name="a_model_endpoint_is_deployed_in_a_known_way",
            ),
            models.CheckConstraint(
                condition=(IS_WANTED & Q(capacity__gte=1))
                | (~IS_WANTED & Q(capacity=0)),
                name="a_model_endpoint_that_is_wanted_has_a_capacity",
            ),
            models.CheckConstraint(
                condition=~Q(state=State.READY) | Q(ready_at__isnull=False),
                name="a_model_endpoint_says_since_when",
            ),
            models.CheckConstraint(
                condition=Q(state=State.DELETED, deleted_at__isnull=False, held=0)
                | Q(~Q(state=State.DELETED), deleted_at=None),
                name="a_deleted_model_endpoint_holds_nothing",
            ),
            models.CheckConstraint(
                condition=Q(refused_capacity=None, refusal="")
                | (
                    Q(refused_capacity__isnull=False, refused_capacity=F("capacity"))
                    & ~Q(refusal="")
                ),
                name="a_refusal_of_a_model_says_why",
            ),
        ]

    def __str__(self) -> str:
        return self.title

    @property
    def title(self) -> str:
        """ "gpt-4o with 30k tokens a minute"."""
        return f"{self.model} with {self.capacity:,}k tokens a minute"

    @property
    def state_of(self) -> State:
        """Where it is."""
        return State(self.state)

    @property
    def deployment(self) -> str:
        """What it is called in its account, and in calls of it."""
        return deployment_name(self.model, self.sku)

    @property
    def is_true(self) -> bool:
        """Whether Azure has what is wanted of it."""
        return self.state == State.READY and self.held == self.capacity

    @property
    def is_refused(self) -> bool:
        """Whether Azure refused for good what is wanted of it now."""
        return self.refused_capacity is not None


class ModelQuota(Row):
    """A model that can be deployed in a region in one way, and what is used of its quota, as Azure said last.

    In thousands of tokens a minute. `version` is the one that Azure offers by default.
    """

    subscription = models.ForeignKey(
        Subscription, models.CASCADE, related_name="models"
    )
    region = models.CharField(max_length=40)
    model = models.CharField(max_length=60)
    sku = models.CharField(max_length=40)
    version = models.CharField(max_length=40)
    # What Azure calls the quota, such as OpenAI.Standard.gpt-4o; a limit of 0 where it tells of none.
    quota = models.CharField(max_length=120)
    limit = models.PositiveIntegerField()
    used = models.PositiveIntegerField()
    seen_at = models.DateTimeField()

    class Meta:
        ordering = ["region", "model", "sku"]
        constraints = [
            models.UniqueConstraint(
                fields=["subscription", "region", "model", "sku"],
                name="a_model_is_in_a_region_once",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.quota} in {self.region}: {self.used} of {self.limit}"

    @property
    def left(self) -> int:
        """What may still be deployed."""
        return max(0, self.limit - self.used)

    @property
    def sentence(self) -> str:
        """ "420 of 450 thousand tokens a minute are left in eastus"."""
        return f"{self.left:,} of {self.limit:,} thousand tokens a minute are left in {self.region}"
