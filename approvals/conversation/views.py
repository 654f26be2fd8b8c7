"""Saying something about a request, and changing what was asked while it waits."""

from datetime import datetime
from typing import Any

from django import forms
from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST

from accounts.current_user import add_refusal, visitor, with_refusal
from accounts.models import Team
from approvals.conversation import actions as conversation
from approvals.models import Request
from approvals.request_form import answer_panel
from approvals.request_form.form import RequestForm
from approvals.requests import page as request_page
from approvals.requests.actions import LEAST_REASON
from approvals.requests.text_form import TextForm
from approvals.states import State
from catalogue.models import OfferingSetting, setting_of
from catalogue.offering import Offering
from web.fields import INPUT
from web.refusals import BadInput, Refused


class CommentForm(TextForm):
    """Something said; `back` is where it was said."""

    also = TextForm.also | {"back"}


class EditForm(RequestForm):
    """What is asked for instead, of the version that the form began with."""

    version = forms.IntegerField(
        min_value=1, max_value=2_000_000_000, widget=forms.HiddenInput
    )

    def __init__(
        self, data: Any, *, request: Request, setting: OfferingSetting, team: Team
    ) -> None:
        super().__init__(data, offering=request.of, setting=setting, teams=[team])
        self.fields[
            "reason"
        ].help_text = f"Who decides reads it: at least {LEAST_REASON} characters. An automatic one needs none."


@require_POST
def comment(request: HttpRequest, pk: int) -> HttpResponse:
    """Say something about a request."""
    viewer, now = visitor(request), timezone.now()
    asked = request_page.find_for(viewer, pk, now=now)
    if asked is None:
        raise Http404
    form, status = CommentForm(request.POST), 422
    if form.is_valid():
        try:
            conversation.comment(pk, by=viewer, text=form.cleaned_data["text"], now=now)
            page = "approval" if request.POST.get("back") == "approval" else "request"
            return HttpResponseRedirect(reverse(page, args=[pk]))
        except Refused as refusal:
            status = add_refusal(form, refusal)
    context = request_page.context(asked, viewer=viewer, now=now) | {
        "form": form,
        "comment_opened": True,
        "comment_text": form.data.get("text", ""),
    }
    return with_refusal(
        render(request, "approvals/request.html", context, status=status), form
    )


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def edit(request: HttpRequest, pk: int) -> HttpResponse:
    """Change a waiting request: GET shows form and answer, POST changes it; with `check` it only answers."""
    viewer = visitor(request)
    asked = request_page.find_for(viewer, pk, now=timezone.now())
    if asked is None or asked.requester_id != viewer.pk:
        raise Http404
    if asked.state != State.WAITING:
        state = State(asked.state).words.lower()
        messages.warning(request, f"Nothing was changed: it is already {state}.")
        return HttpResponseRedirect(reverse("request", args=[pk]))
    data = request.POST if request.method == "POST" else _starts(asked)
    form = EditForm(data, request=asked, setting=setting_of(asked.of), team=asked.team)
    if request.method != "POST" or "check" in {**request.POST, **request.GET}:
        return _page(request, asked, form)
    status = 422
    if form.is_valid():
        try:
            _change(asked, form, request)
            return HttpResponseRedirect(reverse("request", args=[pk]))
        except Refused as refusal:
            status = add_refusal(form, refusal)
    return with_refusal(_page(request, asked, form, status=status), form)


def _change(asked: Request, form: EditForm, request: HttpRequest) -> None:
    """Change it as a clean form says; raises Refused."""
    said, wanted = form.cleaned_data, form.wanted
    if said["answered"] and said["answered"] != answer_panel.about(wanted):
        raise BadInput(
            "You changed it after this answer. Here is the new one: look, then change it.",
            code="answer_is_old",
        )
    conversation.edit(
        asked.pk,
        wanted,
        by=visitor(request),
        expected_version=said["version"],
        now=timezone.now(),
    )


def _starts(asked: Request) -> dict[str, str]:
    """The form as the request stands."""
    spec = {name: str(value) for name, value in asked.spec.items()}
    return spec | {
        "team": asked.team.slug,
        "starts_at": _later(asked.starts_at),
        "until": asked.until.strftime(INPUT),
        "reason": asked.reason,
        "version": str(asked.version),
        "namespace": asked.tenancy.namespace if asked.tenancy else "",
    }


def _later(starts_at: datetime | None) -> str:
    """As its field has it; empty once it has passed, for then it begins at once."""
    return (
        ""
        if starts_at is None or starts_at <= timezone.now()
        else starts_at.strftime(INPUT)
    )


def _page(
    request: HttpRequest, asked: Request, form: EditForm, *, status: int = 200
) -> HttpResponse:
    offering: Offering = form.offering
    said = answer_panel.answer_context(
        form, person=visitor(request), now=timezone.now(), own=asked.hold_id
    )
    if said["answer"]:
        # These links begin another request.
        said["answer"]["fits"] = None
        if hint := said["answer"]["verdict"].get("hint"):
            said["answer"]["verdict"]["hint"] = {"text": hint["text"]}
    context = {
        **said,
        "form": form,
        "asked": asked,
        "offering": offering,
        "name": asked.name(),
        "voted": any(
            d.content_version == asked.content_version and d.step_id
            for d in asked.decisions.all()
        ),
    }
    return render(request, "approvals/request_edit.html", context, status=status)
