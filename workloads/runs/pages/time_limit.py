"""The page that gives a run another time limit: what that changes, before it is sent."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import get_object_or_404, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from accounts.current_user import add_refusal, visitor, with_refusal
from accounts.models import User
from ui.amounts import duration, moment, usd
from ui.parts import BeforeAfter, Link
from web.fields import StrictForm, WholeNumberField
from web.refusals import BadInput, NoRight, Refused
from workloads.runs import actions
from workloads.runs.models import Run
from workloads.runs.pages.page import ANEW
from workloads.runs.planning.new_limit import minutes_of, refuse_fixed
from workloads.templates.run import DAY, HOUR, MINUTE

OFFERED_LONGER = (HOUR, 4 * HOUR, DAY)


class TimeLimitForm(StrictForm):
    """How long a run may run, within what its template allows."""

    def __init__(self, run: Run, data: Any = None) -> None:
        super().__init__(data, label_suffix="")
        allowed = minutes_of(run)
        self.fields["minutes"] = WholeNumberField(
            label="Time limit",
            least=allowed.minimum,
            most=allowed.maximum,
            of="minutes",
            help_text=f"From {_words(allowed.minimum * MINUTE)} to {_words(allowed.maximum * MINUTE)}. {ANEW}",
        )


@dataclass(frozen=True, kw_only=True)
class LimitChange:
    """What another time limit changes, and what can stop the run before; the words of its button."""

    changes: Sequence[BeforeAfter]
    early_stops: str
    button: str


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def run_limit(request: HttpRequest, pk: int) -> HttpResponse:
    """GET shows what another time limit would change, POST changes it."""
    user, now = visitor(request), timezone.now()
    run = get_object_or_404(Run.objects.visible_to(user).described(), pk=pk)
    is_sent = request.method == "POST"
    asked = request.POST if is_sent else request.GET
    minutes = asked.get("minutes") or str((run.limit_seconds or 0) // MINUTE)
    form, change = TimeLimitForm(run, {"minutes": minutes}), None
    try:
        refuse_fixed(run)
        if form.is_valid() and is_sent:
            return _set(request, run, form.cleaned_data["minutes"])
        if form.is_valid():
            change = _change_of(run, form.cleaned_data["minutes"], by=user, now=now)
    except NoRight as refusal:
        raise PermissionDenied(refusal.message) from refusal
    except BadInput as refusal:
        add_refusal(form, refusal)
    except Refused as refusal:
        messages.error(request, refusal.message)
        return HttpResponseRedirect(reverse("run", args=[pk]))
    context = {"run": run, "form": form, "change": change, "longer": [*_longer(run)]}
    if not is_sent:
        return render(request, "workloads/run_limit.html", context)
    response = render(request, "workloads/run_limit.html", context, status=422)
    return with_refusal(response, form)


def _set(request: HttpRequest, run: Run, minutes: int) -> HttpResponseRedirect:
    actions.change_limit(
        run.pk, minutes=minutes, by=visitor(request), now=timezone.now()
    )
    messages.success(request, f"The time limit is {_words(minutes * MINUTE)}.")
    return HttpResponseRedirect(reverse("run", args=[run.pk]))


def _change_of(
    run: Run, minutes: int, *, by: User, now: datetime
) -> LimitChange | None:
    """What a limit of so many minutes changes; None for the one that it has, unless a worker gave that up."""
    found = actions.preview_limit(run.pk, minutes, by=by, now=now)
    if found.seconds == run.limit_seconds and run.parked_at is None:
        return None
    changes: list[BeforeAfter] = [
        {
            "label": "Time limit",
            "before": _words(run.limit_seconds or 0),
            "after": _words(found.seconds),
        }
    ]
    if run.limit_at is not None and found.ends_at is not None:
        changes.append(
            {
                "label": "Ends at the latest",
                "before": moment(run.limit_at, now),
                "after": moment(found.ends_at, now),
            }
        )
    if run.usd_at_limit is not None:
        changes.append(
            {
                "label": "Costs at most",
                "before": usd(run.usd_at_limit),
                "after": usd(found.usd_at_limit),
            }
        )
    return LimitChange(
        changes=changes,
        early_stops=found.early_stops,
        button=f"Set to {_words(found.seconds)}",
    )


def _longer(run: Run) -> Iterator[Link]:
    """Longer time limits to choose with a click, as far as the template allows them."""
    most = minutes_of(run).maximum
    for more in OFFERED_LONGER:
        minutes = ((run.limit_seconds or 0) + more) // MINUTE
        if minutes <= most:
            yield {"label": f"{_words(more)} longer", "href": f"?minutes={minutes}"}


def _words(seconds: int) -> str:
    return duration(timedelta(seconds=seconds))
