"""The page of the quota chain: from the subscription to the pod, and which link stops an ask."""

from collections.abc import Sequence
from datetime import datetime
from typing import TypedDict
from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_safe

from accounts.current_user import visitor
from accounts.models import User
from accounts.roles import Permission
from capacity.chain.links import Layer, limit_for
from capacity.chain.words import age
from capacity.connection import is_connected
from capacity.subscriptions.pools import Catalogue
from fleet.models import Cluster
from insights.quota_chain.asking import QuestionForm, spaces_of
from insights.quota_chain.drawing import Bar, bars
from insights.quota_chain.gathering import Chain, chain_of
from ui.amounts import ago, gpus
from ui.parts import Columns, Content, Hint, Row, Verdict

COLUMNS: Columns = [
    "Link",
    {"label": "Limit", "kind": "number"},
    {"label": "Taken", "kind": "number"},
    {"label": "Lets through", "kind": "number"},
    "For this ask",
]


class BarLine(TypedDict):
    """A link of the chain as a bar, with how old it is."""

    bar: Bar
    label: str
    age: str


class ChainAnswer(TypedDict):
    """What stops an ask, drawn and as a table, and what of it is not known."""

    asked: str
    verdict: Verdict
    bars: Sequence[BarLine]
    columns: Columns
    rows: Sequence[Row]
    doubts: Sequence[str]
    is_connected: bool


@require_safe
def quota_chain(request: HttpRequest, name: str) -> HttpResponse:
    """What stops so many GPUs more of a kind on a cluster, drawn link by link."""
    user, now = visitor(request), timezone.now()
    cluster = get_object_or_404(Cluster, name=name)
    known = Catalogue.of([cluster])
    flavors = known.flavors_of(cluster)
    context: dict[str, object] = {"cluster": cluster}
    if flavors:
        form = QuestionForm(
            request.GET, flavors=flavors, spaces=spaces_of(cluster, user)
        )
        context["form"] = form
        if form.is_valid():
            context = {**context, **_answer(form, known, user, now)}
    return render(request, "insights/quota_chain.html", context)


def _answer(
    form: QuestionForm, known: Catalogue, user: User, now: datetime
) -> ChainAnswer:
    more, question = form.cleaned_data["gpus"], form.chosen_question
    chain = chain_of(form.chosen_flavor, form.chosen_tenancy, known, now=now)
    drawn = bars(chain.links(question), more)
    return {
        "asked": gpus(more, chain.flavor.kind),
        "verdict": _strip(chain, form, user),
        "bars": [_line(one, now) for one in drawn],
        "columns": COLUMNS,
        "rows": [{"cells": _cells(one)} for one in drawn],
        "doubts": _doubts(chain, now),
        "is_connected": is_connected(),
    }


def _strip(chain: Chain, form: QuestionForm, user: User) -> Verdict:
    more, question = form.cleaned_data["gpus"], form.chosen_question
    answer = chain.answer(more, question)
    strip: Verdict = {
        "tone": "good" if answer.fits else "bad",
        "sentence": answer.sentence,
        "detail": " ".join(filter(None, (answer.then, answer.advice))),
        "rules": [],
    }
    layer = answer.stopped_by.layer if answer.stopped_by is not None else None
    if layer in (Layer.QUEUE, Layer.NAMESPACE):
        strip["hint"] = {
            "text": "A request is answered as you fill it in.",
            "label": "Ask for more",
            "href": f"{reverse('request-new')}?{urlencode(_asked_for(chain))}",
        }
    elif layer in (Layer.FAMILY, Layer.REGIONAL):
        strip["hint"] = _quota_hint(
            chain, layer, limit_for(chain.facts, layer, more, question), user
        )
    return strip


def _asked_for(chain: Chain) -> dict[str, str]:
    """What the form for GPUs is filled in with: the kind, and the namespace where one is looked at."""
    asked, place = {"flavor": chain.flavor.key}, chain.tenancy
    return (
        asked
        if place is None
        else asked | {"team": place.team.slug, "namespace": place.namespace}
    )


def _quota_hint(chain: Chain, layer: Layer, limit: int, user: User) -> Hint:
    """Where more of a quota is asked for, with the limit that the ask needs filled in."""
    meter = chain.meters.get(layer)
    page = reverse("capacity") if meter is None else reverse("limit", args=[meter])
    needed = f"It needs {limit:,} vCPUs."
    if meter is None or not user.may(Permission.MANAGE_CLUSTERS):
        text = f"{needed} Its readings tell when it will be reached; platform leads ask Azure for more there."
        return {"text": text, "label": "Look at this quota", "href": page}
    return {
        "text": needed,
        "label": "Ask Azure for more",
        "href": f"{page}?limit={limit}#more",
    }


def _line(bar: Bar, now: datetime) -> BarLine:
    return {"bar": bar, "label": bar.link.layer.words, "age": age(bar.link, now)}


def _cells(bar: Bar) -> Sequence[Content]:
    link = bar.link
    room = "no limit" if link.room is None else link.room
    return [
        {"text": link.layer.words, "sub": link.name},
        link.limit,
        link.used,
        room,
        {"tone": bar.tone, "word": bar.words},
    ]


def _doubts(chain: Chain, now: datetime) -> list[str]:
    """What of the chain the portal cannot read, or read long ago."""
    cluster, found = chain.flavor.cluster, []
    subscription = chain.subscription
    if not cluster.azure_id:
        found.append(
            "Nobody has said which AKS cluster this is: its subscription and its pools are not known here."
        )
    elif not is_connected():
        found.append(
            "The portal is not connected to Azure: its subscription and its pools are not known here."
        )
    elif subscription is None or subscription.answered_at is None:
        found.append("Azure has not been read yet for this cluster's subscription.")
    elif not subscription.reachable:
        found.append(
            f"Azure does not answer for this subscription; what you see of it is from "
            f"{ago(subscription.answered_at, now)}. {subscription.message}"
        )
    elif cluster.azure_message:
        found.append(
            f"Azure does not say which pools this cluster has; what you see of them is older. {cluster.azure_message}"
        )
    if chain.seen.silent_since is not None:
        found.append(
            f"The cluster has said nothing since {ago(chain.seen.silent_since, now)}."
        )
    elif not chain.seen.is_known and cluster.is_observed:
        found.append("The portal has not read this cluster's queues yet.")
    return found
