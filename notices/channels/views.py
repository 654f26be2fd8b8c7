"""Pages of channels, for platform leads: the list, one of them, a test, and removing it."""

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import (
    require_http_methods,
    require_POST,
    require_safe,
)

from accounts.current_user import add_refusal, sent, with_refusal
from notices import presenting
from notices.channels import actions as channel_actions
from notices.channels.forms import ChannelForm
from notices.channels.presenting import channel_row
from notices.models import Channel
from notices.views import FORM_METHODS, lead, refused
from web.refusals import Refused

COLUMNS = ["Name", "Kind", "It is told", {"label": "State", "kind": "end"}]


@require_safe
def channels(request: HttpRequest) -> HttpResponse:
    """Every channel."""
    context = {
        "tabs": presenting.settings_tabs(lead(request), "channels"),
        "columns": COLUMNS,
        "rows": [channel_row(channel) for channel in Channel.objects.all()],
    }
    return render(request, "notices/channels.html", context)


@never_cache
@require_http_methods(FORM_METHODS)
def channel_new(request: HttpRequest) -> HttpResponse:
    """Add a channel."""
    person, form = lead(request), ChannelForm(sent(request))
    status = 422
    if request.method == "POST" and form.is_valid():
        values = dict(form.cleaned_data)
        try:
            target = channel_actions.checked(values.pop("url"))
            channel = channel_actions.add_channel(target=target, by=person, **values)
        except Refused as refusal:
            status = add_refusal(form, refusal)
        else:
            messages.success(request, f"{channel.name} is set up. Send it a test.")
            return redirect("channel", channel.pk)
    return _form(request, form, None, status)


@never_cache
@require_http_methods(FORM_METHODS)
def channel(request: HttpRequest, pk: int) -> HttpResponse:
    """One channel: how its last test went, and changing it."""
    person, row = lead(request), get_object_or_404(Channel, pk=pk)
    form = ChannelForm(sent(request), channel=row)
    status = 422
    if request.method == "POST" and form.is_valid():
        values = dict(form.cleaned_data)
        url = values.pop("url")
        try:
            target = channel_actions.checked(url) if url else None
            channel_actions.change_channel(
                row.pk, values=values, target=target, by=person
            )
        except Refused as refusal:
            status = add_refusal(form, refusal)
        else:
            messages.success(request, "Saved.")
            return redirect("channel", row.pk)
    return _form(request, form, row, status)


@require_POST
def channel_test(request: HttpRequest, pk: int) -> HttpResponse:
    """Send a channel a test; how it went is shown on its page."""
    person, row = lead(request), get_object_or_404(Channel, pk=pk)
    try:
        channel_actions.test_channel(row.pk, by=person, now=timezone.now())
    except Refused as refusal:
        return refused(request, refusal, "channel", row.pk)
    return redirect("channel", row.pk)


@require_http_methods(FORM_METHODS)
def channel_remove(request: HttpRequest, pk: int) -> HttpResponse:
    """Ask whether to remove a channel, and do it."""
    person, row = lead(request), get_object_or_404(Channel, pk=pk)
    if request.method != "POST":
        return render(request, "notices/channel_remove.html", {"channel": row})
    channel_actions.remove_channel(row.pk, by=person)
    messages.success(request, f"{row.name} is removed, and its address with it.")
    return redirect("channels")


def _form(
    request: HttpRequest, form: ChannelForm, row: Channel | None, status: int
) -> HttpResponse:
    context: dict[str, object] = {"form": form, "channel": row}
    if row is not None:
        context["outcome"] = presenting.outcome(
            channel_actions.test_of(row), to=row.name
        )
    response = render(
        request, "notices/channel.html", context, status=status if form.errors else 200
    )
    return (
        with_refusal(response, form, detail="The channel was not saved.")
        if form.errors
        else response
    )
