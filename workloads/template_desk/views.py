"""The pages on which platform leads keep templates of runs."""

from django import forms
from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.urls import reverse
from django.utils import timezone
from django.utils.html import format_html
from django.views.decorators.cache import never_cache
from django.views.decorators.http import (
    require_http_methods,
    require_POST,
    require_safe,
)

from accounts.current_user import add_document_refusal, visitor_whom, with_refusal
from accounts.models import User
from ui.parts import Badge, Cell, Row
from web.documents import uploaded
from web.downloads import YAML, text_file
from web.fields import StrictForm, YamlField, YamlFileForm
from web.refusals import Refused
from workloads.runs.pages.form import shown
from workloads.template_desk import actions
from workloads.template_desk.kept import Kept, all_kept, kept_as, require_lead, written
from workloads.template_desk.models import TemplateVersion
from workloads.templates.library import TEMPLATES
from workloads.templates.parameters import Parameter, Type

COLUMNS = ["Template", "Kept as", "Offered", "Last changed"]
ASKS = ["Asks for", "Begins with", "Takes", "The program finds it in"]
HISTORY = ["Version", "What", "By", "When", "Why"]
# What a parameter of a type without limits of its own takes.
TAKES = {
    Type.TEXT: "One line",
    Type.WORDS: "A program and its arguments",
    Type.FLAG: "Yes or no",
    Type.IMAGE: "Any image that is allowed",
    Type.PATH: "An absolute path",
    Type.CLAIM: "A volume",
}


class TemplateForm(StrictForm):
    """A template as YAML. `seen` is the newest version as the page showed it."""

    seen = forms.IntegerField(
        min_value=0, max_value=2_000_000_000, widget=forms.HiddenInput
    )
    yaml = YamlField(
        label="The template as YAML",
        rows=24,
        help_text="A shape of the product, narrowed and filled in. What its form asks stands below.",
    )
    why = forms.CharField(
        label="Why",
        required=False,
        max_length=actions.LONGEST_WHY,
        help_text="One sentence for who reads the history.",
    )


class FileForm(YamlFileForm):
    """Templates as YAML."""

    yaml = YamlField(label="Templates as YAML", rows=18)
    why = forms.CharField(label="Why", required=False, max_length=actions.LONGEST_WHY)


@require_safe
def templates(request: HttpRequest) -> HttpResponse:
    """Every template with what it is kept as."""
    _lead(request)
    context = {"columns": COLUMNS, "rows": [_row(one) for one in all_kept()]}
    return render(request, "workloads/templates.html", context)


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def template_new(request: HttpRequest) -> HttpResponse:
    """A template of its own, begun from another one."""
    lead = _lead(request)
    beginning = kept_as(request.GET.get("from", "")) or Kept(
        slug=TEMPLATES[0].slug, versions=[]
    )
    text = beginning.yaml.replace(f"slug: {beginning.slug}\n", "slug: \n", 1)
    form = TemplateForm(
        request.POST or None, label_suffix="", initial={"seen": 0, "yaml": text}
    )
    return _edit(request, lead, form, None, beginning)


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def template(request: HttpRequest, slug: str) -> HttpResponse:
    """One template: its document, what a form asks by it, and what it was; POST offers it as the document says."""
    lead = _lead(request)
    kept = _kept(slug)
    chosen = _version(kept, request.GET.get("version", ""))
    form = TemplateForm(
        request.POST or None,
        label_suffix="",
        initial={"seen": kept.number, "yaml": chosen or kept.yaml},
    )
    return _edit(request, lead, form, kept, kept)


@require_POST
def template_take_back(request: HttpRequest, slug: str) -> HttpResponse:
    """Offer a template no longer."""
    lead = _lead(request)
    kept = _kept(slug)
    try:
        actions.take_back(slug, by=lead, now=timezone.now())
        messages.success(request, f"{kept.title} is offered no longer. Its runs go on.")
    except Refused as refusal:
        messages.error(request, refusal.message)
    return HttpResponseRedirect(reverse("template", args=[slug]))


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def templates_import(request: HttpRequest) -> HttpResponse:
    """Templates from a file, all or none."""
    lead = _lead(request)
    if request.method != "POST":
        return render(request, "workloads/templates_import.html", {"form": FileForm()})
    form = FileForm(request.POST, text=uploaded(request.FILES.get("file")))
    problems, status = list[dict[str, str]](), 422
    if form.is_valid():
        try:
            clean = form.cleaned_data
            made = actions.take_in(
                clean["yaml"], by=lead, now=timezone.now(), why=clean["why"]
            )
            names = ", ".join(one.title for one in made)
            said = (
                f"Offered from now on: {names}."
                if made
                else "All of it is offered so already."
            )
            messages.success(request, said)
            return HttpResponseRedirect(reverse("templates"))
        except Refused as refusal:
            problems, status = add_document_refusal(form, refusal)
    context = {"form": form, "problems": problems}
    return with_refusal(
        render(request, "workloads/templates_import.html", context, status=status), form
    )


@require_safe
def templates_export(request: HttpRequest) -> HttpResponse:
    """The platform team's own templates as a file."""
    _lead(request)
    return text_file(written(), name="templates.yaml", content_type=YAML)


def _edit(
    request: HttpRequest,
    lead: User,
    form: TemplateForm,
    kept: Kept | None,
    looks_like: Kept,
) -> HttpResponse:
    """The page of a template that is written; what cannot be taken is said at its place, and the text stays."""
    status, problems = 200, list[dict[str, str]]()
    if request.method == "POST":
        status = 422
        if form.is_valid():
            try:
                made = actions.keep(
                    request.POST.get("yaml", ""),
                    by=lead,
                    now=timezone.now(),
                    slug=kept.slug if kept else "",
                    seen=form.cleaned_data["seen"],
                    why=form.cleaned_data["why"],
                )
                messages.success(request, f"{made.title} is offered as you wrote it.")
                return HttpResponseRedirect(reverse("template", args=[made.slug]))
            except Refused as refusal:
                problems, status = add_document_refusal(form, refusal)
    shape = looks_like.template
    context = {
        "form": form,
        "kept": kept,
        "problems": problems,
        "asks": ASKS,
        "parameters": [_asked(one) for one in shape.parameters] if shape else [],
        "columns": HISTORY,
        "history": [_past(kept, one) for one in kept.versions] if kept else [],
        "begin": [
            {"label": one.title, "href": f"?from={one.slug}"} for one in TEMPLATES
        ]
        if not kept
        else [],
    }
    return with_refusal(
        render(request, "workloads/template.html", context, status=status), form
    )


def _row(kept: Kept) -> Row:
    newest = kept.newest
    return {
        "cells": [
            {
                "text": kept.title,
                "href": reverse("template", args=[kept.slug]),
                "sub": kept.slug,
            },
            f"Version {newest.number}" if newest else "As it came",
            _offered_badge(kept),
            newest.at if newest else "–",
        ]
    }


def _offered_badge(kept: Kept) -> Badge:
    if kept.template is not None:
        return {"tone": "good", "word": "Offered"}
    if kept.is_offered:
        return {"tone": "bad", "word": "Needs a change"}
    return {"tone": "past", "word": "Taken back"}


def _asked(one: Parameter) -> Row:
    begins = shown(one.default) if one.default is not None else "–"
    if one.type is Type.FLAG:
        begins = "Yes" if one.default else "No"
    return {
        "cells": [
            one.title,
            _code(begins),
            "Nothing else" if one.is_fixed else _taken(one),
            _code(one.variable or "–"),
        ]
    }


def _taken(one: Parameter) -> str | Cell:
    """What may be written there."""
    if one.type is Type.CHOICE:
        return _code(", ".join(one.choices))
    return (
        f"{one.minimum:,} to {one.maximum:,}"
        if one.type is Type.COUNT
        else TAKES[one.type]
    )


def _code(text: str) -> Cell:
    """A value as it is written, which breaks anywhere: the name of an image is longer than a phone is wide."""
    return {"html": format_html('<span class="copy__value">{}</span>', text)}


def _past(kept: Kept, one: TemplateVersion) -> Row:
    href = f"{reverse('template', args=[kept.slug])}?version={one.number}"
    return {
        "cells": [
            {"text": str(one.number), "href": href},
            "Offered" if one.is_offered else "Taken back",
            one.by.name,
            one.at,
            one.why or "–",
        ]
    }


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
