"""The session as pages see it: whether it holds, and the way back after it has ended."""

from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, JsonResponse
from django.middleware.csrf import get_token
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from accounts import sessions
from accounts.models import User
from accounts.views import start
from portal.http.kept_forms import again_page, unsealed

KEPT = "kept_form"


@never_cache
@require_safe
def state(request: HttpRequest) -> HttpResponse:
    """Whether the session holds, whose it is, and a token for their forms; asking keeps no session alive."""
    user = request.user
    if not isinstance(user, User) or not sessions.keep(
        request.session, now=timezone.now(), active=False
    ):
        return JsonResponse({"signed_in": False})
    return JsonResponse(
        {"signed_in": True, "person": str(user.pk), "token": get_token(request)}
    )


@never_cache
@require_safe
def done(request: HttpRequest) -> HttpResponse:
    """Signed in again, in a tab that was opened for it: the first one goes on by itself."""
    if not request.user.is_authenticated:
        return redirect("sign-in")
    return render(request, "accounts/signed_in_again.html")


@never_cache
@require_POST
def keep(request: HttpRequest) -> HttpResponse:
    """Sign in, and take along what was typed; it lies sealed in the session of this browser."""
    form, response = request.POST.get("kept", ""), start(request)
    if response.status_code == 302 and unsealed(form) is not None:
        request.session[KEPT] = form
    return response


@never_cache
@require_safe
def kept(request: HttpRequest) -> HttpResponse:
    """What was typed before the session ended, to be looked at and sent; home when minutes have passed."""
    if not request.user.is_authenticated:
        return redirect("sign-in")
    form = unsealed(str(request.session.get(KEPT, "")))
    if form is None:
        request.session.pop(KEPT, None)
        return HttpResponseRedirect("/")
    return again_page(request, form)
