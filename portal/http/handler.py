"""How a request reaches the views: from the first middleware to the view, and back, in one thread."""

from typing import Any

from asgiref.sync import sync_to_async
from django.core.handlers.asgi import ASGIHandler
from django.http import HttpRequest
from django.http.response import HttpResponseBase


class OneThreadHandler(ASGIHandler):
    """Django's handler for ASGI, with the chain that it builds for WSGI.

    Every middleware here is synchronous, and Django's own chain goes from them back to the event loop and from there
    to the thread of the view: changes of threads that were a quarter of all that `/healthz` takes.
    The few asynchronous views are called in the loop still, and answer at once with what is streamed from it.
    """

    def load_middleware(self, is_async: bool = False) -> None:
        """Build the chain for a thread, whatever is asked for."""
        super().load_middleware(is_async=False)

    async def get_response_async(self, request: HttpRequest) -> Any:
        """The response of the chain, called in the thread of this request."""
        response: HttpResponseBase = await sync_to_async(self.get_response)(request)
        return response
