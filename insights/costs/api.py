"""What teams are charged, month by month, over the API."""

from collections.abc import Sequence
from datetime import date, datetime
from typing import Any

from django.http import HttpResponse
from django.utils import timezone
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.endpoints import Endpoint
from allocations.budgets.money import month_of
from allocations.budgets.months import month_named
from allocations.models import Allocation
from insights.costs.charges import Charge, Month, charges_of, month_at, sees_cost_centre
from insights.costs.focus import csv_file
from insights.costs.report import By, Line, lines, of_team, on_cost_centre, summed
from web.output import Month as MonthField
from web.refusals import BadInput
from web.strict import Choice, StrictSerializer, Text


def _amount(told: str, **options: Any) -> serializers.DecimalField:
    return serializers.DecimalField(
        max_digits=14, decimal_places=2, help_text=told, **options
    )


class ChargedSerializer(serializers.Serializer[Line]):
    """What is charged in a month; money is USD."""

    spent_usd = _amount(
        "Until now, or in all of a month that is over.", source="spent.usd"
    )
    spent_gpu_hours = _amount("The GPU-hours of that.", source="spent.gpu_hours")
    to_end_usd = _amount(
        "Planned for the month: if everything held and booked ends on its date.",
        source="to_end.usd",
    )
    to_end_gpu_hours = _amount("The GPU-hours of that.", source="to_end.gpu_hours")
    idle_usd = _amount("Of what is spent, at least so much was used by no work.")


class ChargedUnderSerializer(ChargedSerializer):
    """What is charged under one key."""

    key = serializers.CharField(
        help_text="A team's slug, a cost centre, a project as team/project, a kind, or a person's object id."
    )
    name = serializers.CharField()
    teams = serializers.SerializerMethodField(
        help_text="The slugs of the teams of whose charges it is made."
    )

    def get_teams(self, line: Line) -> list[str]:
        """In the order of the alphabet."""
        return sorted(line.teams)


class MonthlyCostsSerializer(serializers.Serializer[Any]):
    """A month (UTC), added up; `until` is how far it has come."""

    month = MonthField()
    until = serializers.DateTimeField()
    is_over = serializers.BooleanField()
    by = serializers.ChoiceField(choices=[each.value for each in By])
    total = ChargedSerializer()
    results = ChargedUnderSerializer(many=True)


class ChargeQuery(StrictSerializer):
    """Of which month, of which team, and on which cost centre."""

    month = Text(
        required=False,
        max_length=7,
        help_text="Such as 2026-11; the one under way where none is named.",
    )
    team = Text(
        required=False, max_length=40, help_text="The slug of a team; all without it."
    )
    cost_centre = Text(
        required=False,
        max_length=20,
        help_text="The code of a cost centre; all without it.",
    )


class CostQuery(ChargeQuery):
    """By what it is added up."""

    by = Choice(
        required=False,
        choices=[each.value for each in By],
        help_text="By team where nothing is named.",
    )


class CostEndpoint(Endpoint):
    """What is charged of teams one may see, and of other teams on cost centres that are one's own."""

    queryset = Allocation.objects.none()
    serializer_class = MonthlyCostsSerializer
    asks = {"list": CostQuery, "focus": ChargeQuery}
    refuses_values = frozenset({"list", "focus"})

    @extend_schema(operation_id="costs_list", responses=MonthlyCostsSerializer)
    def list(self, request: Request) -> Response:
        """A month's costs by team, cost centre, project, kind of GPU or person, the highest first."""
        month, charges = self._charges(timezone.now())
        by = By(self.asked.get("by", By.TEAM))
        found = {
            "month": month.first,
            "until": month.until,
            "is_over": month.is_over,
            "by": by.value,
            "total": summed(charges),
            "results": lines(charges, by),
        }
        return Response(MonthlyCostsSerializer(found).data)

    @extend_schema(
        responses={
            (200, "text/csv"): OpenApiResponse(
                OpenApiTypes.STR, description="FOCUS 1.2, a line for each charge."
            )
        }
    )
    @action(detail=False, methods=["get"])
    def focus(self, request: Request) -> HttpResponse:
        """A month's charges as a file of the FinOps Open Cost and Usage Specification (FOCUS 1.2)."""
        month, charges = self._charges(timezone.now())
        return csv_file(charges, month)

    def _charges(self, now: datetime) -> tuple[Month, Sequence[Charge]]:
        month = month_at(_begun(self.asked.get("month", ""), now), now)
        charges = charges_of(self.caller, month)
        return month, self._on_cost_centre(self._of_team(charges), every=charges)

    def _of_team(self, charges: Sequence[Charge]) -> Sequence[Charge]:
        if not (slug := self.asked.get("team", "")):
            return charges
        theirs = of_team(charges, slug)
        if not theirs:
            self.check_sees_team(slug)
        return theirs

    def _on_cost_centre(
        self, charges: Sequence[Charge], *, every: Sequence[Charge]
    ) -> Sequence[Charge]:
        if not (code := self.asked.get("cost_centre", "")):
            return charges
        if not on_cost_centre(every, code) and not sees_cost_centre(self.caller, code):
            raise BadInput(
                "You see no cost centre of this code.",
                code="no_such_cost_centre",
                field="cost_centre",
            )
        return on_cost_centre(charges, code)


def _begun(text: str, now: datetime) -> date:
    """The month of this name, the one under way for none; raises BadInput for what is none or has not begun."""
    if not text:
        return month_of(now)
    month = month_named(text)
    if month is None:
        raise BadInput(
            "Give a month as a year and a number, such as 2026-11.",
            code="no_such_month",
            field="month",
        )
    if month > month_of(now):
        raise BadInput(
            f"{month:%B %Y} has not begun: nothing is charged yet.",
            code="month_not_begun",
            field="month",
        )
    return month
