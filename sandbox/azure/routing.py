"""Which handler answers a path: as Azure does, without regard to capitals, and only in the versions that are known."""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote

from sandbox.azure.callers import Caller
from sandbox.azure.errors import ArmError, invalid
from sandbox.azure.faults import Fault

VERBS = {"GET": "read", "PUT": "write", "PATCH": "write", "DELETE": "delete"}
PROVIDERS = "/providers/"


@dataclass(frozen=True)
class Call:
    """One request: `parts` are what the pattern's names stand for, `base` is where Azure is served."""

    method: str
    path: str
    query: Mapping[str, str]
    content: bytes
    base: str
    caller: Caller
    headers: Mapping[str, str] = field(default_factory=dict)
    parts: Mapping[str, str] = field(default_factory=dict)
    fault: Fault | None = None

    def part(self, name: str) -> str:
        """Return what a name of the pattern stands for."""
        return self.parts[name]

    @property
    def version(self) -> str:
        return self.query["api-version"]

    def body(self) -> dict[str, Any]:
        """Return the body; raise ArmError for one that is no JSON object."""
        try:
            read = json.loads(self.content)
        except ValueError as error:
            message = "The request content was invalid and could not be deserialized."
            raise invalid(message, "InvalidRequestContent") from error
        if not isinstance(read, dict):
            raise invalid(
                "The request content is not a JSON object.", "InvalidRequestContent"
            )
        return read


@dataclass(frozen=True)
class Answer:
    """A complete answer; a body of None is none."""

    status: int
    body: Any = None
    headers: Mapping[str, str] = field(default_factory=dict)


Handler = Callable[[Call], Answer]


@dataclass(frozen=True)
class Route:
    """One operation of the API, and the version by which the pinned client calls it.

    In a pattern `{name}` is a part of the path, and `{name...}` as many as there are.
    """

    method: str
    pattern: str
    version: str
    handler: Handler

    def match(self, path: str) -> dict[str, str] | None:
        """Return what the pattern's names stand for in a path as it was sent, None for another path."""
        found = re.fullmatch(_expression(self.pattern), path, re.IGNORECASE)
        return (
            None
            if found is None
            else {name: unquote(text) for name, text in found.groupdict().items()}
        )

    @property
    def action(self) -> str:
        """The permission that it needs: `Microsoft.Compute/skus/read`."""
        provider, *rest = self.pattern.rpartition(PROVIDERS)[2].split("/")
        kinds = [part for part in rest if not part.startswith("{")]
        return "/".join([provider, *kinds, VERBS[self.method]])


@dataclass(frozen=True)
class Router:
    """All routes; the first that matches answers."""

    routes: Sequence[Route]

    def find(self, method: str, path: str) -> tuple[Route, dict[str, str]]:
        """Return the route of a path, and its parts; raise ArmError 404 or 405."""
        others = False
        for route in self.routes:
            parts = route.match(path)
            if parts is not None and route.method == method:
                return route, parts
            others = others or parts is not None
        if others:
            raise ArmError(
                405,
                "MethodNotAllowed",
                f"The http method '{method}' is not supported for '{path}'.",
            )
        message = f"No HTTP resource was found that matches the request URI '{path}'."
        raise ArmError(404, "InvalidResourceType", message)

    @staticmethod
    def check_version(route: Route, query: Mapping[str, str]) -> None:
        """Refuse calls without a version, or in one that the pinned client does not send."""
        version = query.get("api-version", "")
        if not version:
            message = "The api-version query parameter (?api-version=) is required for all requests."
            raise invalid(message, "MissingApiVersionParameter")
        if version != route.version:
            provider, _, kind = route.action.rpartition("/")[0].partition("/")
            message = (
                f"The resource type '{kind}' could not be found in the namespace '{provider}' for api version "
                f"'{version}'. The supported api-versions are '{route.version}'."
            )
            raise invalid(message, "InvalidResourceType")


def _expression(pattern: str) -> str:
    parts = []
    for part in pattern.split("/"):
        if part.endswith("...}"):
            parts.append(f"(?P<{part[1:-4]}>.+?)")
        elif part.startswith("{"):
            parts.append(f"(?P<{part[1:-1]}>[^/]+)")
        else:
            parts.append(re.escape(part))
    return "/".join(parts)
