"""More of a quota on its limit's page: the form that asks Azure, what a limit would give, and what became of asks."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django import forms

from accounts.models import User
from accounts.roles import Permission
from capacity.chain.forecast import Forecast
from capacity.connection import is_connected
from capacity.increases.actions import LONGEST_REASON
from capacity.increases.quotas import increases_of, quota_of, sizes_of, told_of
from capacity.increases.sizing import MachineSize, max_limit, more_machines, suggested
from capacity.increases.words import sentence
from capacity.models import FamilyQuota, Meter, QuotaIncrease
from ui.amounts import moment
from web.fields import StrictForm, WholeNumberField

# How many of the newest asks the page tells of.
SHOWN = 10


class IncreaseForm(StrictForm):
    """Which limit a platform lead asks Azure for, and why."""

    reason = forms.CharField(
        label="Why",
        max_length=LONGEST_REASON,
        help_text="For whoever reads it here later; Azure is not told.",
        widget=forms.Textarea(attrs={"rows": 2}),
    )

    def __init__(
        self, sent: Any = None, *, quota: FamilyQuota, suggestion: int
    ) -> None:
        super().__init__(sent, label_suffix="", initial={"limit": suggestion})
        self.fields["limit"] = limit_field(quota)
        self.order_fields(["limit", "reason"])


def limit_field(quota: FamilyQuota) -> WholeNumberField:
    """The field for a new limit: above the present one."""
    return WholeNumberField(
        label="New limit",
        of="vCPUs",
        least=quota.limit + 1,
        most=max_limit(quota.limit),
    )


@dataclass(frozen=True, kw_only=True)
class Quota:
    """A quota of Azure's that a page is about; `wanted` is the limit that an address asks for, as it came."""

    row: FamilyQuota
    sizes: Sequence[MachineSize]
    suggestion: int
    wanted: str = ""

    @classmethod
    def of(
        cls, meter: Meter, ahead: Forecast | None, wanted: str = ""
    ) -> "Quota | None":
        """What a limit is in Azure; None for one that is no quota. Three queries."""
        row = quota_of(meter)
        if row is None:
            return None
        sizes = sizes_of(row)
        expected = ahead.weeks[-1].high if ahead is not None else None
        return cls(
            row=row,
            sizes=sizes,
            suggestion=suggested(sizes, limit=row.limit, expected=expected),
            wanted=wanted,
        )

    def form(self, sent: Any = None) -> IncreaseForm:
        """The form, filled in with what the address asks for, else with the suggestion."""
        limit, problem = self._asked()
        return IncreaseForm(
            sent, quota=self.row, suggestion=self.suggestion if problem else limit
        )

    def gives(self, sent: Mapping[str, str] | None = None) -> dict[str, str]:
        """What the limit in the form would give: {text}, or {problem}."""
        limit, problem = self._asked(
            sent.get("limit", "") if sent is not None else None
        )
        if problem:
            return {"problem": problem}
        more = more_machines(self.sizes, before=self.row.limit, after=limit)
        return {
            "text": f"{self.row.limit:,} → {limit:,} vCPUs{f': {more}' if more else ''}."
        }

    def _asked(self, sent: str | None = None) -> tuple[int, str]:
        """The limit that is asked for, and what is wrong with it."""
        wanted = self.wanted if sent is None else sent
        if not wanted and sent is None:
            return self.suggestion, ""
        try:
            return limit_field(self.row).clean(wanted), ""
        except forms.ValidationError as error:
            return 0, " ".join(error.messages)


@dataclass(frozen=True, kw_only=True)
class Increase:
    """A request for more of a quota, how far it is, and what it gives."""

    row: QuotaIncrease
    tone: str
    word: str
    gives: str
    sentence: str
    asked: str
    may_withdraw: bool


def panel(
    meter: Meter,
    quota: Quota | None,
    user: User,
    now: datetime,
    *,
    form: IncreaseForm | None = None,
) -> dict[str, object]:
    """The context of the panel; `form` is one that was sent and not taken."""
    if quota is None:
        return {}
    rows = list(increases_of(meter)[:SHOWN])
    may_ask = user.may(Permission.MANAGE_CLUSTERS)
    sent = form.data if form is not None else None
    context: dict[str, object] = {
        "quota": quota.row,
        "may_ask": may_ask,
        "is_connected": is_connected(),
        "is_open": any(one.is_open for one in rows),
        "increases": [_increase(one, quota.sizes, may_ask, now) for one in rows],
    }
    if form is not None or (may_ask and is_connected() and not context["is_open"]):
        # Where the form itself says what is wrong with the limit, nothing is said twice.
        gives = {} if form is not None and "limit" in form.errors else quota.gives(sent)
        context |= {"form": form or quota.form(), "gives": gives}
    return context


def _increase(
    row: QuotaIncrease, sizes: Sequence[MachineSize], may_ask: bool, now: datetime
) -> Increase:
    return Increase(
        row=row,
        tone=row.status.tone,
        word=row.status.words,
        gives=more_machines(sizes, before=row.limit_before, after=row.limit),
        sentence=sentence(told_of(row), now),
        asked=f"{row.asked_by.name} asked on {moment(row.asked_at, now)}",
        may_withdraw=may_ask and row.may_be_withdrawn,
    )
