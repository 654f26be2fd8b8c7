"""A followed log as the answer to a request, of the API and of pages."""

from django.core.handlers.asgi import ASGIRequest
from django.http import (
    HttpRequest,
    HttpResponse,
    HttpResponseBase,
    StreamingHttpResponse,
)

from workloads.runs.logs.reading import PLACE, Frames, Source
from workloads.runs.logs.rights import Right


def stream_of(
    request: HttpRequest, source: Source, *, right: Right, after: str = ""
) -> HttpResponseBase:
    """The log from its oldest kept line, or from behind the last that the reader has, as server-sent events.

    It ends within seconds when the right to read it does.
    """
    if not isinstance(request, ASGIRequest):
        # A synchronous server cannot hold a stream open; this answer tells browsers not to ask again.
        return HttpResponse(status=204)
    last = request.headers.get("Last-Event-ID", "")
    frames = Frames(source, right=right, after=last if PLACE.fullmatch(last) else after)
    response = StreamingHttpResponse(frames, content_type="text/event-stream")
    response["Cache-Control"] = "private, no-store"
    response["X-Accel-Buffering"] = "no"
    return response
