"""Tokens of people and of teams: the list, a new one whose secret is shown once, and revoking."""

from collections.abc import Callable
from functools import partial
from typing import Any

from django.contrib import messages
from django.db.models import F
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST

from accounts.current_user import sent, visible_team, visitor, visitor_whom
from accounts.forms import TeamTokenForm, TokenForm
from accounts.idempotency import new_key, once
from accounts.models import ApiToken, Identity, Team, User
from accounts.roles import Permission
from accounts.tokens import actions
from accounts.tokens.models import ApiTokenQuerySet
from web.refusals import Refused

LONGEST_SEARCH, MOST_FOUND, MOST_ENDED = 120, 50, 100
SENT_BEFORE = (
    "It was created when you sent this before, and its secret was shown then. If you have not kept that, revoke the "
    "token and create another."
)


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def tokens(request: HttpRequest) -> HttpResponse:
    """The person's tokens, and a form for another; the secret is in the answer to the form and nowhere else.

    Who looks after access finds those of others by a POST with `find` alone: a secret that leaked is in no address.
    """
    user = visitor(request)
    finds = set(request.POST) - {"csrfmiddlewaretoken"} == {"find"} and user.may(
        Permission.MANAGE_ACCESS
    )
    form = TokenForm() if finds else TokenForm(sent(request))
    secret, status = "", 200
    if request.method == "POST" and not finds:
        secret = _create(form, user, partial(actions.create_token, user=user), "tokens")
        status = 201 if secret else 422
    context = {
        "form": TokenForm() if secret else form,
        "secret": secret,
        "token": new_key(),
        **_lists(user.tokens.all()),
        **_of_others(request, user),
    }
    return _shown(request, "accounts/tokens.html", context, form, status)


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def team_tokens(request: HttpRequest, slug: str) -> HttpResponse:
    """The tokens of a team's pipelines, and a form for another, which its leads send."""
    user = visitor(request)
    team = visible_team(user, slug)
    visitor_whom(request, partial(actions.check_may_see, team=team))
    form, secret, status = TeamTokenForm(sent(request)), "", 200
    if request.method == "POST":
        make = partial(actions.create_team_token, team=team, by=user)
        secret = _create(form, user, make, f"tokens:{team.slug}")
        status = 201 if secret else 422
    rows = ApiToken.objects.of_team(team).select_related("created_by")
    here = set(team.memberships.values_list("user", flat=True))
    context = {
        "team": team,
        "form": TeamTokenForm() if secret else form,
        "may_make": user.leads(team),
        "secret": secret,
        "token": new_key(),
        **_lists(rows),
        **_identities(team),
    }
    for row in [*context["live"], *context["identities"]]:
        row.maker_has_left = row.created_by_id not in here
    return _shown(request, "accounts/team_tokens.html", context, form, status)


@require_POST
def revoke(request: HttpRequest, prefix: str) -> HttpResponse:
    """End one's own token, one of a team one leads, or anybody's for who looks after access; others are a 404."""
    user = visitor(request)
    rows = ApiToken.objects.select_related("user__pipelines_of").revocable_by(user)
    token = get_object_or_404(rows, prefix=prefix)
    actions.revoke_token(token, by=user, now=timezone.now())
    if (team := token.user.pipelines_of) is not None:
        messages.success(request, f"Revoked {token.name}. It works no more.")
        return redirect("team-tokens", team.slug)
    if token.user_id != user.pk:
        messages.success(
            request, f"Revoked {token} of {token.user.name}. It works no more."
        )
    return redirect("tokens")


def _create(
    form: TokenForm, user: User, make: Callable[..., tuple[ApiToken, str]], route: str
) -> str:
    """The secret of what `make` makes of the form; empty, with the reason in the form, when there is none."""
    if not form.is_valid():
        return ""
    said = dict(form.cleaned_data)
    key, secrets = said.pop("token") or new_key(), list[str]()

    def create() -> str:
        secrets.append(make(now=timezone.now(), **said)[1])
        return reverse("tokens")

    body = {name: str(value) for name, value in said.items()}
    try:
        once(user, route=f"page:{route}", key=key, body=body, action=create)
    except Refused as refusal:
        form.add_error(refusal.field or None, refusal.message)
        return ""
    if not secrets:
        form.add_error(None, SENT_BEFORE)
    return "".join(secrets)


def _shown(
    request: HttpRequest,
    template: str,
    context: dict[str, Any],
    form: TokenForm,
    status: int,
) -> HttpResponse:
    response = render(request, template, context, status=status)
    if status == 422:
        response.refusal = {  # type: ignore[attr-defined]
            "detail": "The token was not created.",
            "fields": dict(form.errors),
        }
    return response


def _lists(tokens: ApiTokenQuerySet) -> dict[str, Any]:
    """All usable ones of these tokens, and those that ended last."""
    live = list(tokens.usable(timezone.now()))
    ended = tokens.exclude(pk__in=[token.pk for token in live])
    return {
        "live": live,
        "over": list(ended[:MOST_ENDED]),
        "scopes": ApiToken.Scope,
    }


def _identities(team: Team) -> dict[str, Any]:
    """The applications that act for the team, and those that did last."""
    rows = Identity.objects.of_team(team).select_related("created_by", "parent")
    removed = rows.exclude(removed_at=None).order_by("-removed_at")
    return {
        "identities": list(rows.live().with_acts(timezone.now())),
        "removed_identities": list(removed[:MOST_ENDED]),
    }


def _of_others(request: HttpRequest, user: User) -> dict[str, object]:
    """For who looks after access: what works of everybody's and is named by the search, the one used last first."""
    if not user.may(Permission.MANAGE_ACCESS):
        return {}
    text = request.POST.get("find", "").strip()[:LONGEST_SEARCH]
    rows = ApiToken.objects.usable(timezone.now()).exclude(user=user.pk)
    found = rows.named(text).select_related("user") if text else rows.none()
    live = Identity.objects.live().with_acts(timezone.now())
    live = live.select_related("team", "created_by", "parent")
    named = live.named(text) if text else live.none()
    newest = F("last_used_at").desc(nulls_last=True)
    return {
        "may_search": True,
        "find": text,
        "found": found.order_by(newest, "-created_at")[:MOST_FOUND],
        "found_identities": named.order_by(newest, "-created_at")[:MOST_FOUND],
    }
