"""Pages of channels, for platform leads: the list, one of them, its secret, a test, and removing it."""

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import (
    require_http_methods,
    require_POST,
    require_safe,
)

from accounts.current_user import add_refusal, sent, with_refusal
from accounts.idempotency import new_key, once
from notices import presenting
from notices.channels import actions as channel_actions
from notices.channels import webhook_actions
from notices.channels.forms import AnyChannelForm, ChannelForm, WebhookForm
from notices.channels.presenting import channel_row
from notices.kinds import Way
from notices.models import Channel
from notices.servers import webhooks_are_offered
from notices.views import FORM_METHODS, lead, refused
from web.refusals import Refused

SENT_BEFORE = (
    "The secret was made when you sent this before, and shown then. If you have not kept "
    "that, make another one."
)
COLUMNS = ["Name", "Kind", "It is told", {"label": "State", "kind": "end"}]


@require_safe
def channels(request: HttpRequest) -> HttpResponse:
    """Every channel."""
    context = {
        "tabs": presenting.settings_tabs(lead(request), "channels"),
        "columns": COLUMNS,
        "rows": [channel_row(channel) for channel in Channel.objects.all()],
        "webhooks_are_offered": webhooks_are_offered(),
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
            target = channel_actions.checked(values.pop("url"), way=values["way"])
            channel = channel_actions.add_channel(target=target, by=person, **values)
        except Refused as refusal:
            status = add_refusal(form, refusal)
        else:
            messages.success(request, f"{channel.name} is set up. Send it a test.")
            return redirect("channel", channel.pk)
    return _form(request, form, None, status)


@never_cache
@require_http_methods(FORM_METHODS)
def webhook_new(request: HttpRequest) -> HttpResponse:
    """Add a webhook; its secret is in the answer to the form and nowhere else."""
    person, form = lead(request), WebhookForm(sent(request))
    status = 422
    if request.method == "POST" and form.is_valid():
        values = dict(form.cleaned_data)
        body = {name: str(value) for name, value in values.items()}
        made = list[tuple[Channel, str]]()

        def add() -> str:
            made.append(webhook_actions.add_webhook(target=target, by=person, **values))
            return reverse("channel", args=[made[0][0].pk])

        key = request.POST.get("token", "") or new_key()
        try:
            target = channel_actions.checked(values.pop("url"), way=Way.WEBHOOK)
            page = once(person, route="page:webhook", key=key, body=body, action=add)
        except Refused as refusal:
            status = add_refusal(form, refusal)
        else:
            if made:
                return _secret(request, *made[0])
            messages.info(request, SENT_BEFORE)
            return redirect(page)
    return _form(request, form, None, status)


@never_cache
@require_http_methods(FORM_METHODS)
def webhook_secret(request: HttpRequest, pk: int) -> HttpResponse:
    """Make a webhook a new secret, once however often the form arrives; it is in the answer and nowhere else."""
    person = lead(request)
    row = get_object_or_404(Channel, pk=pk, way=Way.WEBHOOK)
    if request.method != "POST":
        context = {"channel": row, "token": new_key(), "now": timezone.now()}
        return render(request, "notices/webhook_rotate.html", context)
    secrets, back = list[str](), reverse("channel", args=[row.pk])

    def rotate() -> str:
        _, secret = webhook_actions.rotate_secret(row.pk, by=person, now=timezone.now())
        secrets.append(secret)
        return back

    key = request.POST.get("token", "") or new_key()
    once(person, route=f"page:webhook:{row.pk}", key=key, body={}, action=rotate)
    if not secrets:
        messages.info(request, SENT_BEFORE)
        return redirect(back)
    row.refresh_from_db()
    return _secret(request, row, secrets[0])


@never_cache
@require_http_methods(FORM_METHODS)
def channel(request: HttpRequest, pk: int) -> HttpResponse:
    """One channel: how its last test went, and changing it."""
    person, row = lead(request), get_object_or_404(Channel, pk=pk)
    kind = WebhookForm if row.way == Way.WEBHOOK else ChannelForm
    form = kind(sent(request), channel=row)
    status = 422
    if request.method == "POST" and form.is_valid():
        values = dict(form.cleaned_data)
        url = values.pop("url")
        try:
            target = channel_actions.checked(url, way=row.way) if url else None
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


def _secret(request: HttpRequest, row: Channel, secret: str) -> HttpResponse:
    context = {"channel": row, "secret": secret, "overlaps": row.former_secret_until}
    return render(request, "notices/webhook_secret.html", context, status=201)


def _form(
    request: HttpRequest, form: AnyChannelForm, row: Channel | None, status: int
) -> HttpResponse:
    what = "webhook" if isinstance(form, WebhookForm) else "channel"
    context: dict[str, object] = {
        "form": form,
        "channel": row,
        "title": row.name if row else f"Add a {what}",
        "save": f"Save the {what}" if row else f"Add the {what}",
        "remove": f"Remove the {what}…",
        "is_webhook": what == "webhook",
        "webhooks_are_offered": webhooks_are_offered(),
        "now": timezone.now(),
    }
    if row is None and what == "webhook":
        context["token"] = request.POST.get("token", "") or new_key()
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
