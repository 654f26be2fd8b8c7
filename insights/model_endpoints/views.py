"""What platform leads do about a model of Azure OpenAI on the page of its request."""

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.utils import timezone
from django.views.decorators.http import require_POST

from accounts.current_user import tell_refusal, visitor
from approvals.models import Request
from capacity.models import ModelEndpoint
from capacity.openai import actions
from web.refusals import Refused


@require_POST
def retry(request: HttpRequest, pk: int) -> HttpResponse:
    """Have a worker try a model's account now; leads back to the newest request for the model."""
    user = visitor(request)
    row = get_object_or_404(ModelEndpoint.objects.visible_to(user), pk=pk)
    try:
        actions.try_again(row.pk, by=user, now=timezone.now())
    except Refused as refusal:
        tell_refusal(request, refusal)
    else:
        messages.success(request, "A worker tries it now.")
    asked = Request.objects.filter(allocation__endpoint=row).order_by("-pk").first()
    return redirect("request", asked.pk) if asked else redirect("team", row.team.slug)
