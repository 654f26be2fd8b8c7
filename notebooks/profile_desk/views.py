"""The pages on which platform leads maintain the profiles of notebook servers."""

from typing import Any

from django import forms
from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import (
    require_http_methods,
    require_POST,
    require_safe,
)

from accounts.current_user import (
    add_document_refusal,
    add_refusal,
    sent,
    visitor_whom,
    with_refusal,
)
from accounts.models import User
from notebooks.profile_desk import actions, page
from notebooks.profile_desk.kept import (
    Kept,
    all_kept,
    kept_as,
    missing_in,
    offered,
    require_lead,
    written,
)
from notebooks.profiles.states import OFFERED, State
from web.documents import uploaded
from web.downloads import YAML, text_file
from web.fields import StrictForm, YamlField, YamlFileForm, set_choices
from web.refusals import Refused

LARGEST_NUMBER = 2_000_000_000
BEGINNING = """\
slug:
title: 1 × A100
help: PyTorch with a GPU of your own.
image: registry.example.com/notebook/pytorch:2.9-cuda13
cpus: 8
memory: 64
gpus: 1
flavor: a100
"""


class ProfileForm(StrictForm):
    """A profile as YAML. `seen` is the newest version as the page showed it."""

    seen = forms.IntegerField(
        min_value=0, max_value=LARGEST_NUMBER, widget=forms.HiddenInput
    )
    yaml = YamlField(
        label="The profile as YAML",
        rows=20,
        help_text="What a server gets, and who may choose it.",
    )
    reason = forms.CharField(
        label="Why",
        required=False,
        max_length=actions.MAX_REASON,
        help_text="One sentence for who reads the history.",
    )


class FileForm(YamlFileForm):
    """Profiles as YAML."""

    yaml = YamlField(label="A profile_list as YAML", rows=18)
    reason = forms.CharField(label="Why", required=False, max_length=actions.MAX_REASON)


class EndForm(StrictForm):
    """Deprecating or retiring a profile."""

    do = forms.ChoiceField(choices=[("deprecate", "Deprecate"), ("retire", "Retire")])
    reason = forms.CharField(
        label="Why",
        max_length=actions.MAX_REASON,
        help_text="One sentence for the people who use it.",
    )
    successor = forms.ChoiceField(
        label="What to choose instead",
        required=False,
        help_text="People are offered it on the card.",
    )

    def __init__(self, data: Any, *, kept: Kept) -> None:
        super().__init__(data, label_suffix="")
        others = [
            (one.document.slug, one.document.title)
            for one in offered()
            if one.document.slug != kept.slug
        ]
        set_choices(self, "successor", [("", "Nothing"), *others])


@require_safe
def profiles(request: HttpRequest) -> HttpResponse:
    """Every profile and how far it has come."""
    _lead(request)
    context = {"columns": page.COLUMNS, "rows": page.rows_of(all_kept())}
    return render(request, "notebooks/profiles.html", context)


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def profile_new(request: HttpRequest) -> HttpResponse:
    """A new profile, begun from an example or another one; POST keeps it as a draft."""
    lead = _lead(request)
    other = kept_as(request.GET.get("from", ""))
    text = (
        other.newest.text.replace(f"slug: {other.slug}\n", "slug:\n", 1)
        if other
        else BEGINNING
    )
    form = ProfileForm(
        sent(request), label_suffix="", initial={"seen": 0, "yaml": text}
    )
    return _edit(request, lead, form, None)


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def profile(request: HttpRequest, slug: str) -> HttpResponse:
    """One profile: its document, what it lacks, what KubeSpawner gets, its history; POST keeps a version as a draft."""
    lead = _lead(request)
    kept = _kept(slug)
    text = _version(kept, request.GET.get("version", "")) or kept.newest.text
    form = ProfileForm(
        sent(request), label_suffix="", initial={"seen": kept.number, "yaml": text}
    )
    return _edit(request, lead, form, kept)


@require_POST
def profile_publish(request: HttpRequest, slug: str) -> HttpResponse:
    """Let people choose its newest version."""
    lead = _lead(request)
    kept = _kept(slug)
    seen = request.POST.get("seen", "")
    try:
        actions.publish(
            slug,
            by=lead,
            seen=int(seen) if seen.isascii() and seen.isdigit() else None,
        )
        messages.success(
            request,
            f"People can choose {kept.newest.title}. Servers that run stay as they are.",
        )
    except Refused as refusal:
        messages.error(request, refusal.message)
    return HttpResponseRedirect(reverse("profile", args=[slug]))


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def profile_end(request: HttpRequest, slug: str) -> HttpResponse:
    """Deprecate a profile or retire it, with a reason and what to choose instead."""
    lead = _lead(request)
    kept = _kept(slug)
    form, status = EndForm(sent(request), kept=kept), 200
    if request.method == "POST":
        status = 422
        if form.is_valid():
            try:
                return _ended(request, lead, kept, **form.cleaned_data)
            except Refused as refusal:
                status = add_refusal(form, refusal)
    context = {
        "form": form,
        "kept": kept,
        "may_deprecate": kept.state in OFFERED,
        "may_retire": kept.state in (State.DRAFT, State.DEPRECATED),
    }
    return with_refusal(
        render(request, "notebooks/profile_end.html", context, status=status), form
    )


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def profiles_import(request: HttpRequest) -> HttpResponse:
    """Profiles from KubeSpawner's `profile_list`, all or none, as drafts."""
    lead = _lead(request)
    if request.method != "POST":
        return render(request, "notebooks/profiles_import.html", {"form": FileForm()})
    form = FileForm(request.POST, text=uploaded(request.FILES.get("file")))
    problems, status = list[dict[str, str]](), 422
    if form.is_valid():
        clean = form.cleaned_data
        try:
            made = actions.take_in(
                clean["yaml"], by=lead, now=timezone.now(), reason=clean["reason"]
            )
            names = ", ".join(one.title for one in made)
            messages.success(request, f"Kept as drafts, and published by you: {names}.")
            return HttpResponseRedirect(reverse("profiles"))
        except Refused as refusal:
            problems, status = add_document_refusal(form, refusal)
    context = {"form": form, "problems": problems}
    return with_refusal(
        render(request, "notebooks/profiles_import.html", context, status=status), form
    )


@require_safe
def profiles_export(request: HttpRequest) -> HttpResponse:
    """The profiles that are not retired, as KubeSpawner's `profile_list`."""
    _lead(request)
    return text_file(written(), name="profile_list.yaml", content_type=YAML)


def _edit(
    request: HttpRequest, lead: User, form: ProfileForm, kept: Kept | None
) -> HttpResponse:
    """The page of a profile that is written; what cannot be taken is named at its place, and the text stays."""
    status, problems = 200, list[dict[str, str]]()
    if request.method == "POST":
        status = 422
        if form.is_valid():
            try:
                made = actions.save(
                    request.POST.get("yaml", ""),
                    by=lead,
                    now=timezone.now(),
                    slug=kept.slug if kept else "",
                    seen=form.cleaned_data["seen"],
                    reason=form.cleaned_data["reason"],
                )
                messages.success(
                    request,
                    "It is kept as a draft. Nobody gets it before you publish it.",
                )
                return HttpResponseRedirect(
                    reverse("profile", args=[made.profile.slug])
                )
            except Refused as refusal:
                problems, status = add_document_refusal(form, refusal)
    context = {
        "form": form,
        "kept": kept,
        "problems": problems,
        **(_about(request, kept) if kept else {}),
    }
    return with_refusal(
        render(request, "notebooks/profile.html", context, status=status), form
    )


def _about(request: HttpRequest, kept: Kept) -> dict[str, Any]:
    """What stands around the document of a profile that there is."""
    places = page.tenancies_to_preview()
    chosen = next(
        (one for one in places if str(one.pk) == request.GET.get("place")),
        next(iter(places), None),
    )
    document, missing = (
        kept.document,
        missing_in(kept) if kept.state is not State.RETIRED else [],
    )
    return {
        "badge": page.badge_of(kept),
        "missing": [{"place": place, "what": what} for place, what in missing],
        "may_publish": not missing
        and (kept.has_draft or kept.state is State.DEPRECATED),
        "may_end": kept.state is not State.RETIRED,
        "is_retired": kept.state is State.RETIRED,
        "places": [
            {
                "pk": one.pk,
                "label": f"{one.team.name}, {one.namespace} on {one.cluster.title}",
                "is_chosen": one is chosen,
            }
            for one in places
        ],
        "preview": page.preview_of(document, chosen) if document and chosen else None,
        "columns": page.HISTORY,
        "history": page.history_of(kept),
    }


def _ended(
    request: HttpRequest,
    lead: User,
    kept: Kept,
    *,
    do: str,
    reason: str,
    successor: str,
) -> HttpResponse:
    act = actions.deprecate if do == "deprecate" else actions.retire
    act(kept.slug, by=lead, reason=reason, successor=successor)
    words = (
        "is deprecated: people read why, and can still choose it"
        if do == "deprecate"
        else "is retired"
    )
    messages.success(request, f"{kept.newest.title} {words}.")
    return HttpResponseRedirect(reverse("profile", args=[kept.slug]))


def _version(kept: Kept, number: str) -> str:
    """The text of an older version that the address names; empty without one."""
    if not number:
        return ""
    found = next((one.text for one in kept.versions if str(one.number) == number), None)
    if found is None:
        raise Http404
    return found


def _kept(slug: str) -> Kept:
    found = kept_as(slug)
    if found is None:
        raise Http404
    return found


def _lead(request: HttpRequest) -> User:
    return visitor_whom(request, require_lead)
