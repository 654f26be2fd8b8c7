"""Keeping GPUs longer: one page with the answer, one click."""

from datetime import datetime, timedelta
from functools import cached_property
from typing import Any, TypedDict

from django import forms
from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import get_object_or_404, render
from django.urls import reverse
from django.utils import timezone
from django.utils.http import urlencode
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from accounts.current_user import add_refusal, visitor, with_refusal
from accounts.idempotency import new_key, once
from allocations.models import Allocation
from approvals.models import Request
from approvals.renewals import renewing
from approvals.renewals.words import gone_on
from approvals.request_form import answer_panel
from approvals.requests.actions import LEAST_REASON, submit_within
from approvals.requests.wanted import Wanted
from approvals.states import State
from ui.parts import Entry, Link
from web.fields import INPUT, LONGEST_TEXT, MomentField, StrictForm
from web.refusals import BadInput, Refused


class Gone(TypedDict):
    """What stands there when nothing is held any more that could be kept."""

    asked: Request
    name: str
    renewal: Request | None
    open: Link


class RenewForm(StrictForm):
    """Until when GPUs are kept. `token` makes a second sending harmless, `answered` is what the answer was about."""

    also = StrictForm.also | {"check"}

    until = MomentField(label="Until (UTC)")
    reason = forms.CharField(
        label="Why",
        required=False,
        max_length=LONGEST_TEXT,
        widget=forms.Textarea(attrs={"rows": 4}),
        help_text=f"Needed when people decide: at least {LEAST_REASON} characters. An automatic answer needs none.",
    )
    token = forms.CharField(widget=forms.HiddenInput, max_length=64, required=False)
    answered = forms.CharField(widget=forms.HiddenInput, max_length=300, required=False)

    def __init__(self, data: Any, *, request: Request) -> None:
        super().__init__(data, label_suffix="")
        self.request = request

    @property
    def is_answerable(self) -> bool:
        """Whether there is an end to judge."""
        self.is_valid()
        return "until" in getattr(self, "cleaned_data", {})

    @property
    def said_until(self) -> datetime | None:
        """The end that the form says, if it says one."""
        return self.cleaned_data["until"] if self.is_answerable else None

    @cached_property
    def wanted(self) -> Wanted:
        """What is asked for; raises Refused as the API would."""
        said = self.cleaned_data
        return renewing.wanted(
            self.request,
            until=said["until"],
            reason=said.get("reason", ""),
            now=timezone.now(),
        )


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def renew(request: HttpRequest, pk: int) -> HttpResponse:
    """GET shows what keeping them longer means, POST asks for it, once per form; with `check` it only answers."""
    held, asked = _found(request, pk)
    if held is None:
        # The second sending of a form whose first one was granted at once is led where that one was.
        renewal = renewing.renewal_of(asked) if request.method == "POST" else None
        if renewal is not None:
            return HttpResponseRedirect(reverse("request", args=[renewal.pk]))
        return render(request, "approvals/renew_gone.html", _gone(asked))
    data = request.POST if request.method == "POST" else _starts(request, held)
    form = RenewForm(data, request=asked)
    if request.method != "POST" or "check" in {**request.POST, **request.GET}:
        return _page(request, held, form)
    status = 422
    if form.is_valid():
        try:
            return HttpResponseRedirect(_send(request, held, form))
        except Refused as refusal:
            status = add_refusal(form, refusal)
    return with_refusal(_page(request, held, form, status=status), form)


def _found(request: HttpRequest, pk: int) -> tuple[Allocation | None, Request]:
    """What is held now under the request that the allocation was granted for; raises Http404 for strangers."""
    row = get_object_or_404(
        Allocation.objects.visible_to(visitor(request)).of_gpus(), pk=pk
    )
    asked = renewing.request_of(row)
    if asked is None or row.team_id != asked.team_id:
        raise Http404
    return renewing.held_under(asked, now=timezone.now()), asked


def _gone(asked: Request) -> Gone:
    return {
        "asked": asked,
        "name": asked.given_name,
        "renewal": renewing.renewal_of(asked),
        "open": {
            "label": "Open the request",
            "href": reverse("request", args=[asked.pk]),
        },
    }


def _starts(request: HttpRequest, held: Allocation) -> dict[str, str]:
    """The form as the link begins it: so many days more, else a week."""
    days = request.GET.get("days", "")
    known = (
        int(days)
        if days in {str(each) for each in renewing.QUICK_DAYS}
        else renewing.USUAL_DAYS
    )
    return {"until": _later(held.until, known).strftime(INPUT)}


def _later(until: datetime, days: int) -> datetime:
    """So many days later, on a whole minute: forms know no seconds, and nothing may end earlier than was said."""
    at = until + timedelta(days=days)
    whole = at.replace(second=0, microsecond=0)
    return whole if whole == at else whole + timedelta(minutes=1)


def _send(request: HttpRequest, held: Allocation, form: RenewForm) -> str:
    """Ask, once per form; returns where the request is. Raises Refused."""
    user, said, wanted = visitor(request), form.cleaned_data, form.wanted
    if said["answered"] and said["answered"] != answer_panel.about(wanted):
        raise BadInput(
            "You changed it after this answer. Here is the new one: look, then ask.",
            code="answer_is_old",
        )
    made: list[Request] = []

    def action() -> str:
        made.append(submit_within(wanted, by=user, now=timezone.now()))
        return reverse("request", args=[made[0].pk])

    body = {"until": said["until"].isoformat(), "reason": said["reason"]}
    link = once(
        user,
        route=f"page:renew:{held.pk}",
        key=said["token"] or new_key(),
        body=body,
        action=action,
    )
    if made and made[0].state == State.APPROVED:
        messages.success(request, f"{gone_on(made[0])}.")
    return link


def _page(
    request: HttpRequest, held: Allocation, form: RenewForm, *, status: int = 200
) -> HttpResponse:
    now, waiting = timezone.now(), renewing.waiting_for(form.request.pk)
    said = answer_panel.answer_context(form, person=visitor(request), now=now)
    if said["answer"] and (hint := said["answer"]["verdict"].get("hint")):
        # Its link begins another request.
        said["answer"]["verdict"]["hint"] = {"text": hint["text"]}
    context = {
        **said,
        "form": form,
        "held": held,
        "asked": form.request,
        "may_renew": held.team_id in visitor(request).team_ids and waiting is None,
        "waits": {
            "text": renewing.waits_words(waiting),
            "href": reverse("request", args=[waiting.pk]),
        }
        if waiting is not None
        else None,
        "name": form.request.name(),
        "ask_label": "Keep them longer",
        "token": new_key(),
        "steps": [
            Entry(phase="future", title=step.words, at=step.at)
            for step in held.next_steps(now)
            if step.what != "reminder"
        ],
        "quick": [
            _quick(held, days, said=form.said_until) for days in renewing.QUICK_DAYS
        ],
    }
    return render(request, "approvals/renew.html", context, status=status)


def _quick(held: Allocation, days: int, *, said: datetime | None) -> Link:
    """A choice of one click; `current` while the form says the same."""
    return {
        "label": "1 day more" if days == 1 else f"{days} days more",
        "current": said == _later(held.until, days),
        "href": f"{reverse('renew', args=[held.pk])}?{urlencode({'days': days})}",
    }
