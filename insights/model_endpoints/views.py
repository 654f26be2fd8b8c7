"""A model of Azure OpenAI by its number: where it is told of, and what platform leads do about it there."""

from django.contrib import messages
from django.db.models import F
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.utils import timezone
from django.views.decorators.http import require_POST, require_safe

from accounts.current_user import tell_refusal, visitor
from approvals.models import Request
from capacity.models import ModelEndpoint
from capacity.openai import actions
from web.refusals import Refused


@require_safe
def model_endpoint(request: HttpRequest, pk: int) -> HttpResponse:
    """A model has no page of its own: the request that it is held for, or was last, says what there is to say."""
    return _page_of(_visible(request, pk))


@require_POST
def retry(request: HttpRequest, pk: int) -> HttpResponse:
    """Have a worker try a model's account now; leads back to the request that the model is held for, or was last."""
    row = _visible(request, pk)
    try:
        actions.try_again(row.pk, by=visitor(request), now=timezone.now())
    except Refused as refusal:
        tell_refusal(request, refusal)
    else:
        messages.success(request, "A worker tries it now.")
    return _page_of(row)


def _visible(request: HttpRequest, pk: int) -> ModelEndpoint:
    rows = ModelEndpoint.objects.visible_to(visitor(request))
    return get_object_or_404(rows.select_related("team"), pk=pk)


def _page_of(row: ModelEndpoint) -> HttpResponse:
    # A model may be held for several; of one that gave its part back, the page says nothing of it any more.
    newest = F("allocation__ended_at").desc(nulls_first=True), "-pk"
    asked = Request.objects.filter(allocation__endpoint=row).order_by(*newest).first()
    return redirect("request", asked.pk) if asked else redirect("team", row.team.slug)
