"""The address that Prometheus scrapes, with a token of its own and without any session."""

from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse
from django.utils import timezone
from django.utils.crypto import constant_time_compare
from django.views.decorators.http import require_safe

from portal.metrics.exposition import CONTENT_TYPE, text_of
from portal.metrics.gathering import gather

ASKED_FOR = 'Bearer realm="metrics"'
UNKNOWN = "Send “Authorization: Bearer TOKEN” with the token of QM_METRICS_TOKEN.\n"


def metrics(request: HttpRequest) -> HttpResponse:
    """Every figure of the portal for its operators; where no token is set, the address does not exist."""
    token = settings.ENV.metrics_token
    if token is None:
        raise Http404
    return _answer(request, token.get_secret_value())


@require_safe
def _answer(request: HttpRequest, token: str) -> HttpResponse:
    if not _is_theirs(request.headers.get("Authorization", ""), token):
        return HttpResponse(
            UNKNOWN,
            status=401,
            content_type="text/plain; charset=utf-8",
            headers={"WWW-Authenticate": ASKED_FOR},
        )
    return HttpResponse(text_of(gather(now=timezone.now())), content_type=CONTENT_TYPE)


def _is_theirs(header: str, token: str) -> bool:
    """Whether a call has the token; how long the answer takes tells nothing of it."""
    scheme, _, given = header.partition(" ")
    return scheme.lower() == "bearer" and constant_time_compare(given, token)
