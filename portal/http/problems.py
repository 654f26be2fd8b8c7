"""One shape for everything that was refused: problem+json for the API (RFC 9457), a page for people."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import structlog
from django.core.exceptions import PermissionDenied, RequestDataTooBig
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from django.template import loader
from django.views.defaults import server_error
from rest_framework import exceptions
from rest_framework.renderers import JSONRenderer
from rest_framework.response import Response

from accounts.current_user import STATUS
from accounts.models import User
from connectors.errors import ConnectorError, PermanentError
from portal.http import database_errors, kept_forms
from web.filtering import BadQuery
from web.parsing import BodyTooLarge
from web.refusals import BadValues, Refused, Sort, pointer_to

logger = structlog.get_logger(__name__)
MEDIA_TYPE = "application/problem+json"
TITLES = {
    400: "The call cannot be understood",
    401: "Sign in first",
    403: "You may not do this",
    404: "Not found",
    405: "Not possible here",
    406: "No such format",
    408: "The request came too slowly",
    409: "Not possible as things stand",
    411: "Say how long the body is",
    412: "It has changed since you looked",
    413: "The body is too large",
    415: "Send JSON",
    422: "Some values cannot be taken",
    428: "Say which version you saw",
    429: "Too many calls",
    500: "Something broke on our side",
    502: "An outside system refused",
    503: "Not possible just now",
}


class SlashMissing(exceptions.NotFound):
    """The address without the slash at its end is none; the one with it is."""

    def __init__(self, path: str) -> None:
        super().__init__(f"Write the address with a slash at its end: {path}/")


def problem_response(error: Exception, context: Mapping[str, Any]) -> Response | None:
    """DRF's exception handler: every refusal as problem+json; None leaves what nobody expected to Django."""
    request = context["request"]
    if isinstance(error, Refused):
        each = error.problems if isinstance(error, BadValues) else (error,)
        errors = [
            {
                "pointer": one.pointer or pointer_to(one.field),
                "code": one.code,
                "detail": one.message,
            }
            for one in each
            if one.field
        ]
        later = {"Retry-After": "30"} if error.sort is Sort.AWAY else None
        return _respond(
            request, STATUS[error.sort], error.code, error.message, errors, later
        )
    if isinstance(error, PermanentError):
        return _respond(request, 502, "outside_system_refused", error.message, [])
    if isinstance(error, ConnectorError):
        return _respond(
            request,
            503,
            "outside_system_away",
            error.message,
            [],
            {"Retry-After": "10"},
        )
    if isinstance(error, database_errors.FAILURES):
        return _lost(request, database_errors.meaning(error))
    if isinstance(error, Http404):
        error = exceptions.NotFound()
    if isinstance(error, RequestDataTooBig):
        error = BodyTooLarge()
    if isinstance(error, PermissionDenied):
        error = exceptions.PermissionDenied()
    if not isinstance(error, exceptions.APIException):
        return None
    return _from_drf(request, error)


def _lost(request: Any, loss: database_errors.Loss) -> Response:
    response = _respond(
        request, 503, loss.code, loss.detail, [], {"Retry-After": str(loss.retry_after)}
    )
    response.loss = loss  # type: ignore[attr-defined]
    return response


def _from_drf(request: Any, error: exceptions.APIException) -> Response:
    status = 422 if isinstance(error, exceptions.ValidationError) else error.status_code
    headers = {}
    if wait := getattr(
        error, "wait", None
    ):  # how many seconds, of exceptions.Throttled
        headers["Retry-After"] = str(int(wait) + 1)
    if isinstance(error, exceptions.AuthenticationFailed | exceptions.NotAuthenticated):
        headers["WWW-Authenticate"] = 'Bearer realm="quartermaster"'
    if isinstance(error, exceptions.ValidationError):
        errors = list(_flat(error.get_full_details(), ""))
        return _respond(
            request,
            status,
            "not_taken",
            "Look at the fields named in errors.",
            errors,
            headers,
        )
    if isinstance(error, BadQuery):
        errors = list(_flat(error.errors, ""))
        return _respond(
            request, status, "bad_query", str(error.detail), errors, headers
        )
    detail = (
        "There is no such thing, or it is not yours to see."
        if status == 404 and not isinstance(error, SlashMissing)
        else str(error.detail)
    )
    return _respond(request, status, str(error.get_codes()), detail, [], headers)


def _flat(details: Any, pointer: str) -> Iterator[dict[str, str]]:
    """DRF's nested error details as a list with a JSON pointer each (RFC 6901)."""
    if (
        isinstance(details, Mapping)
        and {"message", "code"} == set(details)
        and isinstance(details["message"], str)
    ):
        yield {
            "pointer": pointer,
            "code": str(details["code"]),
            "detail": str(details["message"]),
        }
    elif isinstance(details, Mapping):
        for key, inner in details.items():
            name = "" if key == "non_field_errors" else pointer_to(str(key))
            yield from _flat(inner, pointer + name)
    else:
        for inner in details:
            yield from _flat(inner, pointer)


def _respond(
    request: Any,
    status: int,
    code: str,
    detail: str,
    errors: list[dict[str, str]],
    headers: dict[str, str] | None = None,
) -> Response:
    body = problem_body(status, code, detail, path=request.path, errors=errors)
    body["request_id"] = getattr(request, "request_id", "")
    # Also where the address itself answers with a page or with YAML.
    request.accepted_renderer, request.accepted_media_type = (
        JSONRenderer(),
        JSONRenderer.media_type,
    )
    response = Response(body, status=status, headers=headers, content_type=MEDIA_TYPE)
    response.refusal = {  # type: ignore[attr-defined]
        "detail": detail,
        "code": code,
        "fields": {e["pointer"]: e["detail"] for e in errors},
    }
    inner = getattr(request, "_request", None)
    # `_user`: asking for `user` would ask the database again, which may be what failed.
    if inner is not None and getattr(request, "_user", None) is not None:
        inner.api_user = request._user
    return response


def problem_body(
    status: int,
    code: str,
    detail: str,
    *,
    path: str,
    errors: Sequence[dict[str, str]] = (),
) -> dict[str, Any]:
    """A problem as programs read it (RFC 9457)."""
    return {
        "type": f"/api/problems#{code}",
        "title": TITLES.get(status, "Not done"),
        "status": status,
        "code": code,
        "detail": detail,
        "instance": path,
        "errors": list(errors),
        "request_id": "",
    }


def csrf_failure(request: HttpRequest, reason: str = "") -> HttpResponse:
    """The page for a form that did not come from here; one of ours that is only too old can be sent again as it is."""
    kept = kept_forms.kept_form(request) if isinstance(request.user, User) else None
    if kept is not None:
        return kept_forms.again_page(request, kept, status=403)
    detail = "The form is too old or came from another site. Go back, reload the page and send it again."
    context = {"status": 403, "title": "The form was not accepted", "detail": detail}
    return render(request, "errors/problem.html", context, status=403)


def unreadable_page(request: HttpRequest, exception: Exception) -> HttpResponse:
    """The page for what could not be read, inside the frame for who is signed in; Django's own knows nobody."""
    return render(request, "errors/400.html", status=400)


def _failed_call(request: HttpRequest) -> HttpResponse:
    """What nobody expected, as programs read it; the number of the request finds it in the log."""
    detail = "Something broke on our side. Nothing of the call was kept; name the request_id to who runs the portal."
    body = problem_body(500, "unexpected", detail, path=request.path)
    body["request_id"] = getattr(request, "request_id", "")
    return JsonResponse(body, status=500, content_type=MEDIA_TYPE)


def failed_page(request: HttpRequest) -> HttpResponse:
    """The page for what nobody expected, and for a database that did not do what it was asked: that one is 503.

    It stands inside the frame, which asks the database, unless that is what failed or the frame fails as well.
    """
    loss = database_errors.at_hand()
    if loss is None:
        if request.path.startswith("/api/"):
            return _failed_call(request)
        if database_errors.is_of_the_database():
            return server_error(request)
        try:
            return render(request, "errors/500.html", status=500)
        except Exception:
            logger.exception("the frame of an error page failed")
            return server_error(request)
    context = {"detail": loss.detail, "request_id": getattr(request, "request_id", "")}
    # Without the request: its frame asks the database.
    page = loader.render_to_string("errors/503.html", context)
    response = HttpResponse(
        page, status=503, headers={"Retry-After": str(loss.retry_after)}
    )
    response.loss = loss  # type: ignore[attr-defined]
    return response
