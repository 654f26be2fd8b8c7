"""The policy's history, its drafts, and taking it in and out as YAML."""

from collections.abc import Callable

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import get_object_or_404, render
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
    visitor,
    with_refusal,
)
from accounts.directory import freshness
from accounts.models import User
from accounts.roles import Permission
from approvals.judging.inputs import policy_in_force
from approvals.policy_desk import actions as policy_actions
from approvals.policy_desk import page as policy_shown
from approvals.policy_desk.forms import (
    ActivationForm,
    CancellationForm,
    ImportForm,
    NewDraftForm,
    PolicyForm,
    VersionForm,
)
from approvals.policy_desk.parsing import NotAPolicy
from policy.document import write
from policy.models import PolicyDraft, PolicyVersion
from web.documents import uploaded
from web.downloads import YAML, text_file
from web.refusals import Refused


@require_safe
def versions(request: HttpRequest) -> HttpResponse:
    """Every policy there was, newest first."""
    _reader(request)
    return render(
        request, "approvals/policy_versions.html", policy_shown.history(timezone.now())
    )


@require_safe
def version(request: HttpRequest, number: int) -> HttpResponse:
    """One policy: what it said, what it changed, and who put it in force."""
    return _version(request, _reader(request), number, CancellationForm())


@require_POST
def cancel(request: HttpRequest, number: int) -> HttpResponse:
    """Have a policy that is to come later not come."""
    viewer = _reader(request)
    if not viewer.may(Permission.ACTIVATE_POLICY):
        raise PermissionDenied
    get_object_or_404(PolicyVersion, number=number)
    form, status = CancellationForm(request.POST), 422
    if form.is_valid():
        try:
            freshness.renew(viewer, now=timezone.now())
            found = policy_actions.cancel(
                number,
                by=viewer,
                why=form.cleaned_data["reason"],
                now=timezone.now(),
            )
            messages.success(request, f"{found} does not come into force.")
            return HttpResponseRedirect(reverse("policy-version", args=[number]))
        except Refused as refusal:
            status = add_refusal(form, refusal)
    return with_refusal(_version(request, viewer, number, form, status), form)


def _version(
    request: HttpRequest,
    viewer: User,
    number: int,
    form: CancellationForm,
    status: int = 200,
) -> HttpResponse:
    found = get_object_or_404(
        PolicyVersion.objects.select_related(
            "proposed_by", "activated_by", "cancellation__by"
        ),
        number=number,
    )
    context = {
        **policy_shown.version(found, now=timezone.now()),
        "may_draft": viewer.may(Permission.MANAGE_POLICY),
        "may_cancel": viewer.may(Permission.ACTIVATE_POLICY),
        "cancellation": form,
        "cancel_label": f"Cancel {str(found).lower()}",
    }
    return render(request, "approvals/policy_version.html", context, status=status)


@require_safe
def export(request: HttpRequest) -> HttpResponse:
    """The policy in force as YAML, or any version for who may see them."""
    asked = request.GET.get("version", "")
    found, _ = policy_in_force(timezone.now())
    if asked and asked != str(found.number):
        _reader(request)
        if not (asked.isascii() and asked.isdigit() and len(asked) < 10):
            raise Http404
        found = get_object_or_404(PolicyVersion, number=int(asked))
    name = f"policy-{found.number}.yaml"
    return text_file(write(found.policy), name=name, content_type=YAML)


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def drafts(request: HttpRequest) -> HttpResponse:
    """Open drafts, and those that were closed lately; POST begins one."""
    viewer = _reader(request, writes=request.method == "POST")
    form, status = NewDraftForm(request.POST if request.method == "POST" else None), 200
    if request.method == "POST":
        status = 422
        if form.is_valid():
            try:
                return _to(_begin(form, by=viewer))
            except Refused as refusal:
                status = add_refusal(form, refusal)
    context = policy_shown.drafts() | {
        "form": form,
        "may_draft": viewer.may(Permission.MANAGE_POLICY),
    }
    response = render(request, "approvals/policy_drafts.html", context, status=status)
    return with_refusal(response, form) if form.errors else response


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def draft(request: HttpRequest, pk: int) -> HttpResponse:
    """One draft: what it changes, what it would have decided, its numbers; POST saves them."""
    viewer = _reader(request, writes=request.method == "POST")
    found = _find(pk)
    if request.method != "POST":
        return _page(request, found)
    form, status = PolicyForm(request.POST, draft=found), 422
    if form.is_valid():
        try:
            said, why = form.said(), form.cleaned_data["reason"]
            policy_actions.change(
                pk,
                by=viewer,
                expected_version=form.cleaned_data["version"],
                said=said,
                why=why,
                now=timezone.now(),
            )
            messages.success(request, "The draft is saved.")
            return _to(found)
        except NotAPolicy as refused:
            form.add_problems(refused.problems)
        except Refused as refusal:
            status = add_refusal(form, refusal)
    return with_refusal(_page(request, found, form=form, status=status), form)


@require_POST
def take_over(request: HttpRequest, pk: int) -> HttpResponse:
    """Put a draft on the newest version."""

    def act(viewer: User, seen: int) -> HttpResponse:
        found = policy_actions.take_over(
            pk, by=viewer, expected_version=seen, now=timezone.now()
        )
        messages.success(
            request, f"The draft is on {found.base} now; what it changes stayed."
        )
        return _to(found)

    return _act(request, pk, VersionForm(request.POST), act)


@require_POST
def hand_in(request: HttpRequest, pk: int) -> HttpResponse:
    """Ask others to put one's own draft in force."""

    def act(viewer: User, seen: int) -> HttpResponse:
        found = policy_actions.hand_in(
            pk, by=viewer, expected_version=seen, now=timezone.now()
        )
        messages.success(
            request,
            "Every other platform lead and engineering leadership are told that it waits for them.",
        )
        return _to(found)

    return _act(request, pk, VersionForm(request.POST), act)


@require_POST
def discard(request: HttpRequest, pk: int) -> HttpResponse:
    """Throw a draft away."""

    def act(viewer: User, seen: int) -> HttpResponse:
        policy_actions.discard(pk, by=viewer, now=timezone.now())
        messages.success(request, "The draft is thrown away.")
        return HttpResponseRedirect(reverse("policy-drafts"))

    return _act(request, pk, VersionForm(request.POST), act)


@require_POST
def activate(request: HttpRequest, pk: int) -> HttpResponse:
    """Put a draft in force."""
    form = ActivationForm(request.POST)

    def act(viewer: User, seen: int) -> HttpResponse:
        freshness.renew(viewer, now=timezone.now())
        made = policy_actions.activate(
            pk,
            by=viewer,
            expected_version=seen,
            now=timezone.now(),
            active_from=form.cleaned_data["active_from"],
            everything_automatic=form.cleaned_data["everything_automatic"],
        )
        messages.success(
            request,
            f"{made} is in force."
            if made.active_from <= timezone.now()
            else f"{made} is set.",
        )
        return HttpResponseRedirect(reverse("policy-version", args=[made.number]))

    return _act(request, pk, form, act)


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def take_in(request: HttpRequest) -> HttpResponse:
    """A policy as YAML, which becomes a draft."""
    viewer = _reader(request, writes=True)
    if request.method != "POST":
        return render(request, "approvals/policy_import.html", {"form": ImportForm()})
    form, status = (
        ImportForm(request.POST, text=uploaded(request.FILES.get("file"))),
        422,
    )
    problems: list[dict[str, str]] = []
    if form.is_valid():
        try:
            clean = form.cleaned_data
            made = policy_actions.draft(
                by=viewer, now=timezone.now(), said=clean["yaml"], why=clean["reason"]
            )
            messages.success(request, "It is a draft now. Nothing has changed yet.")
            return _to(made)
        except Refused as refusal:
            problems, status = add_document_refusal(form, refusal)
    context = {"form": form, "problems": problems}
    return with_refusal(
        render(request, "approvals/policy_import.html", context, status=status), form
    )


def _act(
    request: HttpRequest,
    pk: int,
    form: VersionForm | ActivationForm,
    act: Callable[[User, int], HttpResponse],
) -> HttpResponse:
    """Do something with a draft as it was seen; a refusal is said on the draft's page."""
    viewer = _reader(request, writes=isinstance(form, VersionForm))
    if not viewer.may(Permission.ACTIVATE_POLICY):
        raise PermissionDenied
    found, status = _find(pk), 422
    if form.is_valid():
        try:
            return act(viewer, form.cleaned_data["version"])
        except Refused as refusal:
            status = add_refusal(form, refusal)
    return with_refusal(_page(request, found, doing=form, status=status), form)


def _page(
    request: HttpRequest,
    found: PolicyDraft,
    *,
    form: PolicyForm | None = None,
    doing: VersionForm | ActivationForm | None = None,
    status: int = 200,
) -> HttpResponse:
    shown = policy_shown.draft(
        found,
        viewer=visitor(request),
        now=timezone.now(),
        days=request.GET.get("days", ""),
        form=form,
    )
    activation = (
        doing
        if isinstance(doing, ActivationForm)
        else ActivationForm(initial={"version": found.version})
    )
    context = {**shown, "doing": doing, "activation": activation}
    return render(request, "approvals/policy_draft.html", context, status=status)


def _begin(form: NewDraftForm, *, by: User) -> PolicyDraft:
    copied = form.cleaned_data["copy"]
    if copied is None:
        return policy_actions.draft(
            by=by, now=timezone.now(), base=form.cleaned_data["base"]
        )
    other = _find(copied)
    return policy_actions.draft(
        by=by,
        now=timezone.now(),
        base=other.base.number,
        said=other.document,
        why=other.why,
    )


def _reader(request: HttpRequest, *, writes: bool = False) -> User:
    viewer = visitor(request)
    if not viewer.may(
        Permission.MANAGE_POLICY if writes else Permission.SEE_POLICY_DRAFTS
    ):
        raise PermissionDenied
    return viewer


def _find(pk: int) -> PolicyDraft:
    return get_object_or_404(
        PolicyDraft.objects.select_related("base", "author", "became"), pk=pk
    )


def _to(found: PolicyDraft) -> HttpResponse:
    return HttpResponseRedirect(reverse("policy-draft", args=[found.pk]))
