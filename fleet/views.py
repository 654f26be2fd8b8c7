"""Pages of the fleet: the clusters, and adding or changing one."""

from collections.abc import Callable

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import (
    require_http_methods,
    require_POST,
    require_safe,
)

from accounts.current_user import add_refusal, sent, visitor, with_refusal
from accounts.models import Team, User
from accounts.roles import Permission
from fleet.clusters import actions as cluster_actions
from fleet.flavors import actions as flavor_actions
from fleet.forms import ClusterForm, FlavorForm, WriteOffForm
from fleet.models import Cluster, Flavor
from fleet.presenting import card
from fleet.removing import remove_cluster, remove_flavor
from fleet.write_off import may_write_off, why_not_written_off, write_off
from web.refusals import Refused

FORM_METHODS = ["GET", "HEAD", "POST"]


@require_safe
def clusters(request: HttpRequest) -> HttpResponse:
    """Every cluster with its health, its kinds of GPU and what is free."""
    rows = Cluster.objects.counted().prefetch_related("flavors")
    may_manage = visitor(request).may(Permission.MANAGE_CLUSTERS)
    return render(
        request,
        "fleet/clusters.html",
        {
            "cards": [card(c, manages=may_manage) for c in rows],
            "may_manage": may_manage,
        },
    )


@require_http_methods(FORM_METHODS)
def cluster_new(request: HttpRequest) -> HttpResponse:
    """Add a cluster."""
    user, form = _lead(request), ClusterForm(sent(request))

    def act() -> Cluster:
        return cluster_actions.add_cluster(
            name=form.cleaned_data["name"], values=form.values(), by=user
        )

    return _answer(request, form, act, title="Add a cluster", button="Add the cluster")


@require_http_methods(FORM_METHODS)
def cluster_edit(request: HttpRequest, name: str) -> HttpResponse:
    """Change a cluster."""
    user, cluster = _lead(request), get_object_or_404(Cluster, name=name)
    form = ClusterForm(sent(request), instance=cluster)

    def act() -> Cluster:
        return cluster_actions.change_cluster(cluster.pk, values=form.values(), by=user)

    return _answer(
        request,
        form,
        act,
        title=f"Change {cluster.title}",
        button="Save the cluster",
        cluster=cluster,
    )


@require_POST
def accept_identity(request: HttpRequest, name: str) -> HttpResponse:
    """Have a cluster be the API server that its kubeconfig leads to now."""
    user, cluster = _lead(request), get_object_or_404(Cluster, name=name)
    found = request.POST.get("identity_found", "")
    return _accept(
        request,
        name,
        lambda: cluster_actions.accept_identity(cluster.pk, found=found, by=user),
    )


@require_POST
def accept_capacity(request: HttpRequest, name: str) -> HttpResponse:
    """Believe how many nodes a cluster lists."""
    user, cluster = _lead(request), get_object_or_404(Cluster, name=name)
    return _accept(
        request, name, lambda: cluster_actions.accept_capacity(cluster.pk, by=user)
    )


def _accept(
    request: HttpRequest, name: str, act: Callable[[], Cluster]
) -> HttpResponse:
    try:
        act()
    except Refused as refusal:
        messages.error(request, refusal.message)
    else:
        messages.success(
            request, "Accepted. A worker looks at the cluster within a minute."
        )
    return redirect("cluster", name)


@require_http_methods(FORM_METHODS)
def flavor_new(request: HttpRequest, name: str) -> HttpResponse:
    """Add a kind of GPU to a cluster."""
    user, cluster = _lead(request), get_object_or_404(Cluster, name=name)
    form = FlavorForm(sent(request), cluster=cluster)

    def act() -> Cluster:
        return flavor_actions.add_flavor(
            cluster, name=form.cleaned_data["name"], values=form.values(), by=user
        ).cluster

    return _answer(
        request,
        form,
        act,
        title="Add a kind of GPU",
        button="Add the kind",
        cluster=cluster,
    )


@require_http_methods(FORM_METHODS)
def flavor_edit(request: HttpRequest, name: str, flavor: str) -> HttpResponse:
    """Change a kind of GPU."""
    user = _lead(request)
    row = get_object_or_404(
        Flavor.objects.select_related("cluster"), cluster__name=name, name=flavor
    )
    form = FlavorForm(sent(request), instance=row, cluster=row.cluster)

    def act() -> Cluster:
        return flavor_actions.change_flavor(
            row.pk,
            values=form.values(),
            by=user,
            price_is_meant=form.cleaned_data.get("price_is_meant", False),
        ).cluster

    return _answer(
        request,
        form,
        act,
        title=f"Change {row.kind}",
        button="Save the kind",
        cluster=row.cluster,
        flavor=row,
    )


@require_http_methods(FORM_METHODS)
def cluster_remove(request: HttpRequest, name: str) -> HttpResponse:
    """Remove a cluster on which nobody ever was; POST does it."""
    user, cluster = _lead(request), get_object_or_404(Cluster, name=name)
    return _remove(
        request,
        lambda: remove_cluster(cluster.pk, by=user),
        what=cluster.title,
        cluster=cluster,
        back=reverse("cluster-edit", args=[name]),
    )


@require_http_methods(FORM_METHODS)
def cluster_write_off(request: HttpRequest, name: str) -> HttpResponse:
    """Write off a cluster that is gone for good; POST does it, with its name typed."""
    user = visitor(request)
    if not may_write_off(user):
        raise PermissionDenied
    cluster = get_object_or_404(Cluster, name=name)
    if cluster.written_off_at is not None:
        return redirect("cluster", name)
    form, now, status = (
        WriteOffForm(sent(request), cluster=cluster),
        timezone.now(),
        422,
    )
    if request.method == "POST" and form.is_valid():
        try:
            write_off(cluster.pk, name=form.cleaned_data["name"], by=user, now=now)
        except Refused as refusal:
            status = add_refusal(form, refusal)
        else:
            messages.success(request, f"{cluster.title} is written off.")
            return redirect("cluster", name)
    not_yet = why_not_written_off(cluster, now=now)
    context = {
        "form": form,
        "cluster": cluster,
        "why_not": not_yet.message if not_yet else "",
        "teams": Team.objects.filter(
            tenancies__in=cluster.tenancies.exclude(stage="gone")
        )
        .distinct()
        .count(),
        "gpus": sum(flavor.allocated for flavor in cluster.flavors.all()),
        "back": reverse("cluster", args=[name]),
    }
    response = render(
        request, "fleet/write_off.html", context, status=status if form.errors else 200
    )
    return (
        with_refusal(response, form, detail="The cluster was not written off.")
        if form.errors
        else response
    )


@require_http_methods(FORM_METHODS)
def flavor_remove(request: HttpRequest, name: str, flavor: str) -> HttpResponse:
    """Remove a kind of GPU that nobody has asked for; POST does it."""
    user = _lead(request)
    rows = Flavor.objects.select_related("cluster")
    row = get_object_or_404(rows, cluster__name=name, name=flavor)
    return _remove(
        request,
        lambda: remove_flavor(row.pk, by=user),
        what=row.kind,
        cluster=row.cluster,
        flavor=row,
        back=reverse("flavor-edit", args=[name, flavor]),
    )


def _remove(
    request: HttpRequest,
    act: Callable[[], None],
    *,
    what: str,
    cluster: Cluster,
    back: str,
    flavor: Flavor | None = None,
) -> HttpResponse:
    context = {"what": what, "cluster": cluster, "flavor": flavor, "back": back}
    if request.method != "POST":
        return render(request, "fleet/remove.html", context)
    try:
        act()
    except Refused as refusal:
        context["refusal"] = refusal.message
        response = render(request, "fleet/remove.html", context, status=409)
        response.refusal = {"detail": refusal.message, "code": refusal.code}  # type: ignore[attr-defined]
        return response
    messages.success(request, f"{what} is removed.")
    return redirect("clusters") if flavor is None else redirect("cluster", cluster.name)


def _answer(
    request: HttpRequest,
    form: ClusterForm | FlavorForm,
    act: Callable[[], Cluster],
    *,
    title: str,
    button: str,
    cluster: Cluster | None = None,
    flavor: Flavor | None = None,
) -> HttpResponse:
    """Show the form, or do what it says and go to the cluster; a refusal stands at its field."""
    status = 422
    if request.method == "POST" and form.is_valid():
        try:
            done = act()
        except Refused as refusal:
            status = add_refusal(form, refusal)
            if refusal.code == "doubtful_price" and isinstance(form, FlavorForm):
                form.doubt_price()
        else:
            messages.success(
                request, "Saved. A worker looks at the cluster within a minute."
            )
            return redirect("cluster", done.name)
    context = {
        "form": form,
        "title": title,
        "button_label": button,
        "cluster": cluster,
        "flavor": flavor,
    }
    response = render(
        request, "fleet/form.html", context, status=status if form.errors else 200
    )
    return (
        with_refusal(response, form, detail="The fleet was not changed.")
        if form.errors
        else response
    )


def _lead(request: HttpRequest) -> User:
    user = visitor(request)
    if not user.may(Permission.MANAGE_CLUSTERS):
        raise PermissionDenied
    return user
