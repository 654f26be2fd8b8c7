"""Personal tokens: the list, a new one whose secret is shown once, and revoking."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST

from accounts import actions
from accounts.current_user import sent
from accounts.forms import TokenForm
from accounts.models import ApiToken, User
from web.refusals import Refused


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def tokens(request: HttpRequest) -> HttpResponse:
    """The person's tokens, and a form for another; the secret is in the answer to the form and nowhere else."""
    user = _person(request)
    form = TokenForm(sent(request))
    secret, status = "", 200
    if request.method == "POST":
        secret = _create(form, user)
        status = 201 if secret else 422
    context = {
        "form": TokenForm() if secret else form,
        "secret": secret,
        **_lists(user),
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
    """End one of the person's own tokens; a stranger's looks like a missing one."""
    user = _person(request)
    token = get_object_or_404(user.tokens, prefix=prefix)
    actions.revoke_token(token, by=user, now=timezone.now())
    return redirect("tokens")


def _create(form: TokenForm, user: User) -> str:
    """The secret of the new token; empty, with the reason in the form, when there is none."""
    if not form.is_valid():
        return ""
    try:
        return actions.create_token(user=user, now=timezone.now(), **form.cleaned_data)[
            1
        ]
    except Refused as refusal:
        form.add_error(refusal.field or None, refusal.message)
        return ""


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


def _person(request: HttpRequest) -> User:
    assert isinstance(request.user, User)  # noqa: S101 - the middleware lets nobody else in
    return request.user
