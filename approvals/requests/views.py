"""The list of requests, one request, and what its requester can do with it."""

from collections.abc import Callable

from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import get_object_or_404, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_POST, require_safe

from accounts.current_user import add_refusal, visitor, with_refusal
from allocations.forms import LetGoForm
from approvals.models import Request
from approvals.requests import actions, listing
from approvals.requests import page as request_page
from approvals.requests.links import on_board_link
from approvals.requests.paging import page_of
from approvals.requests.text_form import TextForm
from ui.controls import is_filtered
from web.refusals import Refused


@require_safe
def requests(request: HttpRequest) -> HttpResponse:
    """Every request that the person may see, newest first."""
    now = timezone.now()
    form, rows = listing.filtered(request)
    page = page_of(listing.with_cost(rows), request.GET.dict())
    context = {
        "filter": form,
        "is_filtered": is_filtered(form),
        "columns": listing.COLUMNS,
        "rows": [listing.row(each, now=now) for each in page.rows],
        "page": page,
        "clear": {"label": "Clear the filter", "href": "?"},
        "first": {"label": "Ask for GPUs", "href": reverse("request-new")},
        "on_board": on_board_link(visitor(request)),
    }
    return render(request, "approvals/requests.html", context)


@require_safe
def request(request: HttpRequest, pk: int) -> HttpResponse:
    """One request: what it is, what it waits for, what happened and comes."""
    return _page(request, pk, TextForm())


@require_POST
def withdraw(request: HttpRequest, pk: int) -> HttpResponse:
    """Take a waiting request back."""
    return _act(request, pk, TextForm({"text": "-"}), _withdraw)


@require_POST
def answer(request: HttpRequest, pk: int) -> HttpResponse:
    """Answer an approver's question."""
    return _act(request, pk, TextForm(request.POST), _answer)


def _withdraw(asked: Request, request: HttpRequest, form: TextForm) -> None:
    """Withdraw; raises Refused."""
    actions.withdraw(asked.pk, by=visitor(request), now=timezone.now())


def _answer(asked: Request, request: HttpRequest, form: TextForm) -> None:
    """Answer; raises Refused."""
    actions.answer(
        asked.pk,
        by=visitor(request),
        text=form.cleaned_data["text"],
        now=timezone.now(),
    )


def _act(
    request: HttpRequest,
    pk: int,
    form: TextForm,
    action: Callable[[Request, HttpRequest, TextForm], None],
) -> HttpResponse:
    asked = get_object_or_404(Request.objects.visible_to(visitor(request)), pk=pk)
    status = 422
    if form.is_valid():
        try:
            action(asked, request, form)
            return HttpResponseRedirect(reverse("request", args=[pk]))
        except Refused as refusal:
            status = add_refusal(form, refusal)
    return with_refusal(_page(request, pk, form, status=status), form)


def _page(
    request: HttpRequest, pk: int, form: TextForm, *, status: int = 200
) -> HttpResponse:
    viewer = visitor(request)
    asked = request_page.find_for(viewer, pk, now=timezone.now())
    if asked is None:
        raise Http404
    context = request_page.context(asked, viewer=viewer, now=timezone.now()) | {
        "form": form,
        "end_form": LetGoForm(is_member=asked.team_id in viewer.team_ids),
    }
    return render(request, "approvals/request.html", context, status=status)
