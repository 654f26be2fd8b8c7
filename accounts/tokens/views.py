"""Personal tokens: the list, a new one whose secret is shown once, and revoking."""

from django.contrib import messages
from django.db.models import F
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST

from accounts.current_user import sent
from accounts.forms import TokenForm
from accounts.idempotency import new_key, once
from accounts.models import ApiToken, User
from accounts.roles import Permission
from accounts.tokens import actions
from web.refusals import Refused

LONGEST_SEARCH, MOST_FOUND = 120, 50
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
    user = _person(request)
    finds = set(request.POST) - {"csrfmiddlewaretoken"} == {"find"} and user.may(
        Permission.MANAGE_ACCESS
    )
    form = TokenForm() if finds else TokenForm(sent(request))
    secret, status = "", 200
    if request.method == "POST" and not finds:
        secret = _create(form, user)
        status = 201 if secret else 422
    context = {
        "form": TokenForm() if secret else form,
        "secret": secret,
        "token": new_key(),
        **_lists(user),
        **_of_others(request, user),
    }
    response = render(request, "accounts/tokens.html", context, status=status)
    if status == 422:
        response.refusal = {  # type: ignore[attr-defined]
            "detail": "The token was not created.",
            "fields": dict(form.errors),
        }
    return response


@require_POST
def revoke(request: HttpRequest, prefix: str) -> HttpResponse:
    """End one of the person's own tokens, or anybody's for who looks after access; others look like missing ones."""
    user = _person(request)
    rows = ApiToken.objects.select_related("user").revocable_by(user)
    token = get_object_or_404(rows, prefix=prefix)
    actions.revoke_token(token, by=user, now=timezone.now())
    if token.user_id != user.pk:
        messages.success(
            request, f"Revoked {token} of {token.user.name}. It works no more."
        )
    return redirect("tokens")


def _create(form: TokenForm, user: User) -> str:
    """The secret of the new token; empty, with the reason in the form, when there is none."""
    if not form.is_valid():
        return ""
    said = dict(form.cleaned_data)
    key, secrets = said.pop("token") or new_key(), list[str]()

    def create() -> str:
        secrets.append(actions.create_token(user=user, now=timezone.now(), **said)[1])
        return reverse("tokens")

    body = {name: str(value) for name, value in said.items()}
    try:
        once(user, route="page:tokens", key=key, body=body, action=create)
    except Refused as refusal:
        form.add_error(refusal.field or None, refusal.message)
        return ""
    if not secrets:
        form.add_error(None, SENT_BEFORE)
    return "".join(secrets)


def _lists(user: User) -> dict[str, object]:
    now = timezone.now()
    rows = list(user.tokens.all()[:100])
    live = [
        token
        for token in rows
        if token.revoked_at is None
        and token.suspended_by_id is None
        and token.expires_at > now
    ]
    return {
        "live": live,
        "over": [token for token in rows if token not in live],
        "scopes": ApiToken.Scope,
    }


def _of_others(request: HttpRequest, user: User) -> dict[str, object]:
    """For who looks after access: usable tokens of everybody that the search names, the one used last first."""
    if not user.may(Permission.MANAGE_ACCESS):
        return {}
    text = request.POST.get("find", "").strip()[:LONGEST_SEARCH]
    rows = ApiToken.objects.usable(timezone.now()).exclude(user=user.pk)
    found = rows.named(text).select_related("user") if text else rows.none()
    newest = F("last_used_at").desc(nulls_last=True)
    return {
        "may_search": True,
        "find": text,
        "found": found.order_by(newest, "-created_at")[:MOST_FOUND],
    }


def _person(request: HttpRequest) -> User:
    assert isinstance(request.user, User)  # noqa: S101 - the middleware lets nobody else in
    return request.user
