"""The addresses that Backstage's action registry calls (`/.backstage/actions/v1`).

Each action is carried out by its call of the API, which checks the token, counts the call and refuses as it does for
everybody; here it is put in Backstage's words. The protocol is an alpha of Backstage's: integrations/backstage holds
the portal against a real one.
"""

import json
from functools import cache, reduce
from http import HTTPStatus
from io import BytesIO
from operator import getitem
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

from django.conf import settings
from django.contrib.auth.models import AnonymousUser
from django.core.exceptions import TooManyFieldsSent
from django.http import HttpRequest, HttpResponse, JsonResponse, QueryDict
from django.urls import resolve, reverse
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_POST, require_safe
from rest_framework.exceptions import APIException

from accounts.directory.backstage import PLUGIN_ID
from accounts.replay import KEY as REPLAY_KEY
from accounts.replay import KEY_RULE
from portal.backstage.operations import KEY, PAGES, Operation, listed, operations
from web.parsing import BoundedJson

# Backstage shows the sentence of an error with one of its own names alone.
NAMES = {
    401: "AuthenticationError",
    403: "NotAllowedError",
    404: "NotFoundError",
    409: "ConflictError",
    412: "ConflictError",
    429: "ServiceUnavailableError",
    502: "ServiceUnavailableError",
    503: "ServiceUnavailableError",
}


@require_safe
def actions(request: HttpRequest) -> HttpResponse:
    """What can be done; for everybody, as the API's description is, which says the same.

    Backstage asks before each step of each template and each tool, of this plugin or another, and waits for the answer.
    """
    return HttpResponse(_listed(), content_type="application/json")


@cache
def _listed() -> bytes:
    return json.dumps({"actions": [*listed()]}, separators=(",", ":")).encode()


@csrf_exempt
@require_POST
def invoke(request: HttpRequest, action: str) -> HttpResponse:
    """Carry an action out for the person whom the token is for."""
    if not request.headers.get("Authorization"):
        return _refused(401, "Send “Authorization: Bearer TOKEN”.")
    # Whose browser it may be counts for nothing here, and is not who was refused.
    request.api_user = AnonymousUser()  # type: ignore[attr-defined]
    operation = operations().get(action.removeprefix(f"{PLUGIN_ID}:"))
    if operation is None:
        return _refused(404, "There is no such action.")
    try:
        given = BoundedJson().parse(BytesIO(request.body)) if request.body else {}
    except APIException as error:
        return _refused(error.status_code, str(error.detail))
    if absent := operation.in_path.keys() - given.keys():
        return _refused(422, f"/{absent.pop()}: This field is needed.")
    if untaken := operation.action.left_out & given.keys():
        return _refused(422, f"/{min(untaken)}: There is no such field.")
    key = given.get(KEY) if operation.is_keyed else ""
    if operation.is_keyed and not (isinstance(key, str) and REPLAY_KEY.fullmatch(key)):
        return _refused(422, f"/{KEY}: {KEY_RULE}")
    try:
        _become_call(request, operation, given)
    except TooManyFieldsSent:
        return _refused(400, "These are more values than an address can hold.")
    match = request.resolver_match = resolve(request.path)
    answer = match.func(request, *match.args, **match.kwargs)
    return _answered(
        operation, answer.render() if hasattr(answer, "render") else answer
    )


def _become_call(
    request: HttpRequest, operation: Operation, given: dict[str, Any]
) -> None:
    """Turn the request into the API's own, which is what the log and the audit log see from here on."""
    path, left = operation.path, dict(given)
    for name, parameter in operation.in_path.items():
        value = quote(str(left.pop(name)), safe="", errors="replace")
        path = path.replace(f"{{{parameter}}}", value)
    key = left.pop(KEY) if operation.is_keyed else ""
    # What is not known goes where the API refuses it by name.
    behind = {
        name: left.pop(name)
        for name in list(left)
        if operation.method == "GET" or name in operation.in_query
    }
    query = urlencode(
        {name: _plain(value) for name, value in behind.items() if value is not None},
        errors="replace",
    )
    body = b"" if operation.method == "GET" else json.dumps(left).encode()
    request.method, request.path, request.path_info = operation.method, path, path
    request.GET = QueryDict(query)
    request._body = body
    request.META |= {
        "REQUEST_METHOD": operation.method,
        "PATH_INFO": path,
        "QUERY_STRING": query,
        "CONTENT_TYPE": "application/json",
        "CONTENT_LENGTH": str(len(body)),
        "HTTP_IDEMPOTENCY_KEY": key,
    }
    for name in ("HTTP_IF_MATCH", "HTTP_IF_NONE_MATCH"):
        request.META.pop(name, None)
    # They are read from META when they are first asked for.
    vars(request).pop("headers", None)


def _plain(value: Any) -> str:
    """A value as an address has it."""
    return value if isinstance(value, str) else json.dumps(value)


def _answered(operation: Operation, answer: HttpResponse) -> HttpResponse:
    """The API's answer in Backstage's words, with what the middleware has to know of a refusal."""
    told = json.loads(answer.content) if answer.content else {}
    if HTTPStatus.OK <= answer.status_code < HTTPStatus.MULTIPLE_CHOICES:
        # A caller has no use for addresses of the API, and what stands in one is not as it is to be sent.
        if PAGES.issubset(told):
            told |= {name: _cursor_in(told[name] or "") for name in PAGES}
        action = operation.action
        if action.page:
            key = reduce(getitem, action.page_of, told)
            told["page"] = settings.PUBLIC_URL + reverse(action.page, args=[key])
        return JsonResponse({"output": told})
    errors = told.get("errors") or [{"pointer": "", "detail": told.get("detail", "")}]
    sentence = " ".join(
        f"{one['pointer']}: {one['detail']}" if one["pointer"] else one["detail"]
        for one in errors
    )
    wait = answer.headers.get("Retry-After")
    if wait:
        sentence += f" Try again in {wait} seconds."
    refused = _refused(answer.status_code, sentence)
    if wait:
        refused["Retry-After"] = wait
    if hasattr(answer, "refusal"):
        refused.refusal = answer.refusal  # type: ignore[attr-defined]
    return refused


def _cursor_in(address: str) -> str | None:
    return QueryDict(urlsplit(address).query).get("cursor")


def _refused(status: int, sentence: str) -> HttpResponse:
    """An error as Backstage's backends send it to each other.

    The scaffolder shows whoever waits for a task nothing of it but the status code that stands in it, as it is: so the
    sentence stands there, too. Tools of MCP show the name and the message.
    """
    error = {"name": NAMES.get(status, "InputError"), "message": sentence}
    response = {"statusCode": f"{status}: {sentence}"}
    return JsonResponse(
        {"error": error, "request": {}, "response": response}, status=status
    )
