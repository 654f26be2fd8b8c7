"""A followed log as the answer to a request, of the API and of pages."""

from collections.abc import Sequence

from django.core.handlers.asgi import ASGIRequest
from django.http import (
    HttpRequest,
    HttpResponse,
    HttpResponseBase,
    StreamingHttpResponse,
)

from web.refusals import Conflict
from workloads.runs.logs.reading import (
    MAX_KEPT,
    PLACE,
    Frames,
    KeptSource,
    Line,
    Source,
    read_log,
)
from workloads.runs.logs.rights import Right


def stream_of(
    request: HttpRequest,
    source: Source | KeptSource,
    *,
    right: Right,
    after: str = "",
    tail: int | None = None,
) -> HttpResponseBase:
    """The log from its oldest kept line, its last lines, or behind the last that the reader has, as server-sent events.

    It ends within seconds when the right to read it does. Raises Refused where its last lines cannot be read.
    """
    if not isinstance(request, ASGIRequest):
        # A synchronous server cannot hold a stream open; this answer tells browsers not to ask again.
        return HttpResponse(status=204)
    last = request.headers.get("Last-Event-ID", "")
    if PLACE.fullmatch(last):
        after, tail = last, None
    response: HttpResponseBase
    if isinstance(source, KeptSource):
        kept = source.frames(tail=tail or MAX_KEPT, after=after)
        response = HttpResponse(kept, content_type="text/event-stream")
    else:
        begun = last_lines(source, tail) if tail is not None else ()
        frames = Frames(source, right=right, after=after, begun=begun)
        response = StreamingHttpResponse(frames, content_type="text/event-stream")
    response["Cache-Control"] = "private, no-store"
    response["X-Accel-Buffering"] = "no"
    return response


def last_lines(source: Source, tail: int) -> Sequence[Line]:
    """So many lines to begin with; none of a pod that has not started, which is waited for."""
    try:
        return read_log(source, tail=tail)
    except Conflict as refusal:
        if refusal.code != "log_not_started":
            raise
        return ()
