"""The pages on which platform leads connect the JupyterHubs of clusters."""

from typing import Any

from django import forms
from django.contrib import messages
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

from accounts.current_user import add_refusal, sent, visitor_whom, with_refusal
from accounts.models import User
from fleet.models import Cluster
from notebooks.hubs import actions, page
from notebooks.hubs.connections import LONGEST_ADDRESS
from notebooks.hubs.models import Hub
from notebooks.profiles.idle import Reclaim
from web.edits import KeepsOthersEdits
from web.fields import StrictForm
from web.refusals import Refused


class HubForm(KeepsOthersEdits, StrictForm):
    """How a hub is reached, and what happens to idle servers there."""

    address = forms.CharField(
        label="Address",
        max_length=LONGEST_ADDRESS,
        help_text="Where the portal calls it, such as https://hub.example.com.",
        widget=forms.TextInput(attrs={"spellcheck": "false", "autocapitalize": "off"}),
    )
    public_address = forms.CharField(
        label="Address for people",
        max_length=LONGEST_ADDRESS,
        required=False,
        help_text="Where people open it, if that is another one.",
        widget=forms.TextInput(attrs={"spellcheck": "false", "autocapitalize": "off"}),
    )
    token_file = forms.CharField(
        label="Token file",
        max_length=200,
        help_text="The name of the file with the portal’s token as the hub’s service.",
        widget=forms.TextInput(attrs={"spellcheck": "false", "autocapitalize": "off"}),
    )
    reclaim = forms.ChoiceField(
        label="Servers with idle GPUs",
        choices=[(each.value, each.words) for each in Reclaim],
        help_text="What happens to them after the profile’s idle time.",
    )


@require_safe
def hubs(request: HttpRequest) -> HttpResponse:
    """Every cluster with its hub and how that is."""
    _lead(request)
    context = {"columns": page.COLUMNS, "rows": page.rows_of(page.clusters_with_hubs())}
    return render(request, "notebooks/hubs.html", context)


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def hub(request: HttpRequest, cluster: str) -> HttpResponse:
    """The hub of a cluster: its state, its key, how it is reached; POST connects or changes it."""
    lead, (found, there) = _lead(request), _cluster(cluster)
    initial = (
        {name: getattr(there, name) for name in HubForm.base_fields} if there else {}
    )
    form, status = HubForm(sent(request), label_suffix="", initial=initial), 200
    if request.method == "POST":
        status = 422
        if form.is_valid():
            try:
                actions.connect(found, **form.cleaned_data, by=lead, now=timezone.now())
                messages.success(
                    request, "Saved. A worker observes the hub within a minute."
                )
                return HttpResponseRedirect(reverse("hub", args=[cluster]))
            except Refused as refusal:
                status = add_refusal(form, refusal)
    return with_refusal(_page(request, found, there, form, status=status), form)


@never_cache
@require_POST
def hub_key(request: HttpRequest, cluster: str) -> HttpResponse:
    """Make a new key of the hub; it is in this answer and nowhere else."""
    lead, (found, there) = _lead(request), _cluster(cluster)
    if there is None:
        raise Http404
    there, key = actions.make_key(there, by=lead, now=timezone.now())
    initial = {name: getattr(there, name) for name in HubForm.base_fields}
    return _page(
        request,
        found,
        there,
        HubForm(label_suffix="", initial=initial),
        status=201,
        key=key,
    )


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def hub_disconnect(request: HttpRequest, cluster: str) -> HttpResponse:
    """Disconnect the hub of a cluster, after a page that says what that means."""
    lead, (found, there) = _lead(request), _cluster(cluster)
    if there is None:
        raise Http404
    if request.method != "POST":
        return render(
            request, "notebooks/hub_disconnect.html", {"cluster": found, "hub": there}
        )
    try:
        actions.disconnect(there, by=lead, now=timezone.now())
        messages.success(request, f"The hub of {found.title} is disconnected.")
        return HttpResponseRedirect(reverse("hubs"))
    except Refused as refusal:
        messages.error(request, refusal.message)
        return HttpResponseRedirect(reverse("hub", args=[cluster]))


def _page(
    request: HttpRequest,
    cluster: Cluster,
    hub: Hub | None,
    form: HubForm,
    *,
    status: int,
    key: str = "",
) -> HttpResponse:
    now = timezone.now()
    context: dict[str, Any] = {
        "cluster": cluster,
        "hub": hub,
        "badge": page.badge_of(hub),
        "facts": page.facts_of(hub) if hub else [],
        "saved": page.saved_of(hub, now) if hub else "",
        "unknown": hub.unknown_servers.all() if hub else [],
        "exempt": page.exempt_on(hub, now=now) if hub else [],
        "idle_unknown": page.idle_unknown_of(hub, now) if hub else None,
        "form": form,
        "key": key,
    }
    return render(request, "notebooks/hub.html", context, status=status)


def _cluster(name: str) -> tuple[Cluster, Hub | None]:
    found = get_object_or_404(Cluster, name=name)
    there = Hub.objects.filter(cluster=found).first()
    if there is not None:
        there.cluster = found
    return found, there


def _lead(request: HttpRequest) -> User:
    return visitor_whom(request, actions.require_lead)
