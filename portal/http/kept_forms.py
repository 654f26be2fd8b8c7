"""A form that was sent after its session had ended: what was typed goes on, sealed, to be sent after signing in.

Only what one of our own pages sent is kept, by its `Origin`: another site could otherwise put words into a form that
its victim sends. It is shown before it is sent, and lies sealed in the session of the browser that sent it.
"""

import json
import re
from dataclasses import asdict, dataclass
from urllib.parse import urlsplit

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import Resolver404, resolve, reverse

from accounts.current_user import visitor
from accounts.views import safe_target
from notices.sealing import Unreadable, seal, unseal

PURPOSE = b"quartermaster: forms kept over a sign-in"
KEPT_SECONDS = 15 * 60
MAX_KEPT_BYTES = 64 * 1024
FORM_TYPES = ("application/x-www-form-urlencoded", "multipart/form-data")
ABBREVIATED = {"gpus": "GPUs", "cpus": "CPUs", "gpu": "GPU", "url": "URL", "api": "API"}
# What the forms call these fields.
CALLED = {"flavor": "Kind of GPU", "purpose": "For"}
MOMENT = re.compile(r"(\d{4}-\d\d-\d\d)T(\d\d:\d\d)")
# What a page adds to its forms by itself: nobody typed it.
NOT_TYPED = frozenset(
    {
        "csrfmiddlewaretoken",
        "token",
        "answered",
        "same",
        "seen",
        "version",
        "check",
        "next",
    }
)
# Forms that answer before they are sent: sent with `check`, they stand there filled in, with their answer.
ANSWERING = frozenset({"request-new", "renew", "run-new", "run-resume"})


@dataclass(frozen=True)
class KeptForm:
    """Where a form was sent to, from which page, and its fields in their order."""

    path: str
    page: str
    fields: list[tuple[str, str]]

    @property
    def can_answer(self) -> bool:
        """Whether its page shows it filled in, with its answer, before it is sent."""
        try:
            return resolve(urlsplit(self.path).path).url_name in ANSWERING
        except Resolver404:
            return False

    @property
    def typed(self) -> list[tuple[str, str]]:
        """The fields that a person knows, by words."""
        shown = [
            (name, value)
            for name, value in self.fields
            if value.strip() and name not in NOT_TYPED
        ]
        return [(_label(name), _shown(value)) for name, value in shown]


def _label(name: str) -> str:
    """A field's name as people read it, since its form is not at hand."""
    if name in CALLED:
        return CALLED[name]
    first, *others = (ABBREVIATED.get(word, word) for word in name.split("_"))
    return " ".join((first[:1].upper() + first[1:], *others))


def _shown(value: str) -> str:
    """A value as people read it; a moment is in UTC, as in every form."""
    return MOMENT.sub(r"\1 \2 UTC", value) if MOMENT.fullmatch(value) else value


def kept_form(request: HttpRequest) -> KeptForm | None:
    """What one of our own pages sent; None for anything else, and for what is too long to keep."""
    if (
        request.method != "POST"
        or request.content_type not in FORM_TYPES
        or not _is_ours(request)
    ):
        return None
    # Not by the body, which is gone once its parts were read; bodies without a length are refused before.
    if int(request.META.get("CONTENT_LENGTH") or 0) > MAX_KEPT_BYTES:
        return None
    fields = [
        (name, value)
        for name, values in request.POST.lists()
        if name != "csrfmiddlewaretoken"
        for value in values
    ]
    return KeptForm(request.get_full_path(), page_of(request), fields)


def page_of(request: HttpRequest) -> str:
    """The page of ours that a form was sent from; home when the browser does not say."""
    came = urlsplit(request.headers.get("Referer", ""))
    if f"{came.scheme}://{came.netloc}" not in _origins(request):
        return "/"
    return safe_target(
        request, f"{came.path}?{came.query}" if came.query else came.path
    )


def sealed(kept: KeptForm) -> str:
    """The form as text that nobody can read or change."""
    return seal(json.dumps(asdict(kept)), purpose=PURPOSE)


def unsealed(text: str) -> KeptForm | None:
    """A form that was sealed minutes ago; None when it is older, or not ours."""
    try:
        found = json.loads(unseal(text, purpose=PURPOSE, max_age=KEPT_SECONDS))
    except Unreadable:
        return None
    return KeptForm(
        found["path"], found["page"], [(name, value) for name, value in found["fields"]]
    )


def ended_page(request: HttpRequest, kept: KeptForm) -> HttpResponse:
    """The answer to a form whose session has ended: what was typed, and a button that signs in and goes on with it."""
    context = {"kept": kept, "sealed": sealed(kept), "next": reverse("sign-in-kept")}
    response = render(request, "accounts/signed_out.html", context, status=401)
    response["Cache-Control"] = "no-store"
    return response


def again_page(
    request: HttpRequest, kept: KeptForm, *, status: int = 200
) -> HttpResponse:
    """What was typed, with a fresh token and a button that sends it as the person who is signed in now."""
    context = {"kept": kept, "name": visitor(request).name}
    response = render(request, "accounts/send_again.html", context, status=status)
    response["Cache-Control"] = "no-store"
    return response


def _is_ours(request: HttpRequest) -> bool:
    return request.headers.get("Origin", "") in _origins(request)


def _origins(request: HttpRequest) -> frozenset[str]:
    return frozenset(
        {f"{request.scheme}://{request.get_host()}", *settings.CSRF_TRUSTED_ORIGINS}
    )
