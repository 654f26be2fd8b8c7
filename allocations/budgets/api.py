"""A team's money and GPU-hours by month, where they lead, and the ledger behind them."""

from datetime import date
from typing import Any

from django.db.models import QuerySet
from django.http import Http404
from django.shortcuts import get_object_or_404
from django.utils import timezone
from drf_spectacular.utils import (
    OpenApiParameter,
    extend_schema,
    extend_schema_field,
    extend_schema_serializer,
)
from rest_framework import mixins, serializers
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.endpoints import Endpoint
from accounts.models import Team
from accounts.roles import Permission
from allocations.budgets import actions as budget_actions
from allocations.budgets.balances import fresh
from allocations.budgets.money import month_of
from allocations.budgets.months import (
    MONTH,
    month_named,
    months_from,
    pace_of,
    pace_sentences,
)
from allocations.models import Budget, LedgerEntry
from web.output import Month
from web.refusals import BadInput
from web.strict import Integer, Money, PageQuery, StrictSerializer

SHOWN_MONTHS = 36
THE_MONTH = OpenApiParameter("month", str, OpenApiParameter.PATH, pattern=MONTH.pattern)


def _amount(**options: Any) -> serializers.DecimalField:
    return serializers.DecimalField(max_digits=14, decimal_places=2, **options)


class CourseSerializer(serializers.Serializer[Any]):
    """One limit of the month under way, in its own unit."""

    spent = _amount(help_text="By what was held so far.")
    held_to_end = _amount(
        help_text="Planned for the month: if everything held and booked ends on its date."
    )
    at_pace = _amount(
        help_text="By the end of the month at this pace: if everything held now goes on."
    )
    used_up = serializers.DateTimeField(
        allow_null=True, help_text="Null when it lasts the month."
    )


class PaceSerializer(serializers.Serializer[Any]):
    """Where the month under way leads."""

    percent_gone = serializers.IntegerField(help_text="Of the month, 0 to 99.")
    usd = CourseSerializer()
    gpu_hours = CourseSerializer(allow_null=True)
    sentences = serializers.ListField(child=serializers.CharField())


class BudgetSerializer(serializers.Serializer[Budget]):
    """A team's money (USD) and GPU-hours for one calendar month (UTC)."""

    month = Month()
    limit_usd = _amount()
    held_usd = _amount()
    left_usd = _amount()
    gpu_hours_limit = _amount(
        allow_null=True, help_text="Null: as many as the money buys."
    )
    held_gpu_hours = _amount()
    left_gpu_hours = _amount(allow_null=True)
    soft_percent = serializers.IntegerField(
        help_text="From this share of either limit on, people decide."
    )
    is_close = serializers.BooleanField(help_text="Whether that share is reached.")
    pace = serializers.SerializerMethodField(
        help_text="Null for other months than the current one."
    )

    @extend_schema_field(PaceSerializer(allow_null=True))
    def get_pace(self, row: Budget) -> dict[str, Any] | None:
        """Read for the month under way alone."""
        now = timezone.now()
        seen = pace_of(row, now=now)
        if seen is None:
            return None
        said = {
            "percent_gone": seen.percent_gone,
            "usd": seen.usd,
            "gpu_hours": seen.gpu_hours,
        }
        return dict(
            PaceSerializer(said | {"sentences": pace_sentences(seen, now=now)}).data
        )


class BudgetsSerializer(serializers.Serializer[Any]):
    """The months of the last three years, newest first; the current one always stands among them."""

    results = BudgetSerializer(many=True)


class LimitSerializer(StrictSerializer):
    """A month's limits; what is not named stays as it is."""

    limit_usd = Money(required=False)
    gpu_hours_limit = Money(
        required=False, allow_null=True, help_text="Null: as many as the money buys."
    )
    soft_percent = Integer(required=False, min_value=1, max_value=100)

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """Something must be named."""
        if not attrs:
            raise serializers.ValidationError(
                f"Name at least one of: {', '.join(sorted(self.fields))}."
            )
        return attrs


@extend_schema_serializer(component_name="Hold")
class LedgerEntrySerializer(serializers.Serializer[LedgerEntry]):
    """A line of the ledger; what is let go is negative."""

    id = serializers.IntegerField()
    at = serializers.DateTimeField()
    reference = serializers.CharField(
        source="hold.reference", help_text="What it is for: `request-17`."
    )
    request = serializers.IntegerField(
        source="hold.request_id",
        allow_null=True,
        help_text="The request's id, where it is for one.",
    )
    why = serializers.CharField()
    usd = _amount()
    gpu_hours = _amount()


class OfOneTeam(Endpoint):
    """Calls below a team's address."""

    def team(self, slug: str) -> Team:
        """The team, if the caller may see it; raises Http404."""
        return get_object_or_404(Team.objects.visible_to(self.request.user), slug=slug)

    def month(self, text: str) -> date:
        """The month in the address; raises Http404."""
        found = month_named(text)
        if found is None:
            raise Http404
        return found


class BudgetEndpoint(OfOneTeam):
    """A team's budgets."""

    queryset = Budget.objects.none()
    serializer_class = BudgetSerializer

    @extend_schema(operation_id="teams_budgets_list", responses=BudgetsSerializer)
    def list(self, request: Request, slug: str) -> Response:
        """The team's money and GPU-hours, month by month."""
        team = self.team(slug)
        rows = list(Budget.objects.filter(team=team).order_by("-month")[:SHOWN_MONTHS])
        month = month_of(timezone.now())
        if month not in {row.month for row in rows}:
            rows.append(fresh(team, month))
        rows.sort(key=lambda row: row.month, reverse=True)
        return Response(BudgetsSerializer({"results": rows}).data)

    @extend_schema(
        operation_id="teams_budgets_update",
        request=LimitSerializer,
        responses=BudgetSerializer,
        parameters=[THE_MONTH],
    )
    def update(self, request: Request, slug: str, month: str) -> Response:
        """Set a month's limits (platform leads)."""
        team, first = self.team(slug), self.month(month)
        limits = self.body(LimitSerializer)
        open_months = months_from(timezone.now())
        if self.caller.may(Permission.MANAGE_BUDGETS) and first not in open_months:
            raise BadInput(
                f"Limits are set from {open_months[0]:%Y-%m} to {open_months[-1]:%Y-%m}.",
                code="month_not_open",
            )
        budget = budget_actions.set_budget(team, month=first, by=self.caller, **limits)
        return Response(self.shown(budget, BudgetSerializer))


class LedgerEndpoint(mixins.ListModelMixin, OfOneTeam):
    """What was set aside and let go."""

    queryset = LedgerEntry.objects.none()
    serializer_class = LedgerEntrySerializer
    ordering = "-id"
    asks = {"list": PageQuery}

    def get_queryset(self) -> QuerySet[LedgerEntry]:
        """The lines of one team's month."""
        if getattr(self, "swagger_fake_view", False):
            return LedgerEntry.objects.none()
        team, month = self.team(self.kwargs["slug"]), self.month(self.kwargs["month"])
        return LedgerEntry.objects.select_related("hold__request").filter(
            budget__team=team, budget__month=month
        )

    @extend_schema(operation_id="teams_budgets_ledger_list", parameters=[THE_MONTH])
    def list(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """Every hold and release of a month, newest first."""
        return super().list(request, *args, **kwargs)
