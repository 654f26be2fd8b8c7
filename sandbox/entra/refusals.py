"""Refusals in Graph's shape."""

import uuid
from datetime import UTC, datetime
from typing import Any

from starlette.responses import JSONResponse


def graph_error(code: str, message: str) -> dict[str, Any]:
    """Return the body of a Graph error."""
    request = str(uuid.uuid4())
    inner = {
        "date": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S"),
        "request-id": request,
        "client-request-id": request,
    }
    return {"error": {"code": code, "message": message, "innerError": inner}}


class GraphRefusal(Exception):
    """Graph says no, with an HTTP status and its own code."""

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.code = code

    def response(self) -> JSONResponse:
        """Return the answer."""
        headers = {"WWW-Authenticate": "Bearer"} if self.status == 401 else {}
        return JSONResponse(graph_error(self.code, str(self)), self.status, headers)


def missing(key: str) -> GraphRefusal:
    """Return the answer for an object that is not there."""
    message = f"Resource '{key}' does not exist or one of its queried reference-property objects are not present."
    return GraphRefusal(404, "Request_ResourceNotFound", message)


def forbidden() -> GraphRefusal:
    """Return the answer for a caller without the permission."""
    return GraphRefusal(
        403,
        "Authorization_RequestDenied",
        "Insufficient privileges to complete the operation.",
    )
