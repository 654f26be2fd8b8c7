"""How a call is read: JSON only, of a bounded size and depth, whatever it says it accepts."""

import json
from collections import Counter
from collections.abc import Mapping
from typing import Any, NoReturn

from rest_framework.exceptions import APIException, ParseError
from rest_framework.negotiation import BaseContentNegotiation
from rest_framework.parsers import JSONParser
from rest_framework.renderers import BaseRenderer
from rest_framework.request import Request

# Twice the largest script of a run: JSON writes a line break and a quotation mark as two characters.
LARGEST_BODY = 512 * 1024
DEEPEST = 20


class BodyTooLarge(APIException):
    """The body is over the limit."""

    status_code = 413
    default_code = "body_too_large"
    default_detail = f"The body is larger than {LARGEST_BODY // 1024} kB."


class BoundedJson(JSONParser):
    """JSON objects up to 512 kB and 20 levels deep; NaN and infinities are refused."""

    def parse(
        self,
        stream: Any,
        media_type: str | None = None,
        parser_context: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        """The object; raises ParseError saying what is wrong with the body."""
        raw = stream.read(LARGEST_BODY + 1)
        if len(raw) > LARGEST_BODY:
            raise BodyTooLarge
        try:
            data = json.loads(
                raw.decode(),
                parse_constant=_refuse_constant,
                object_pairs_hook=_without_duplicates,
            )
        except RecursionError:
            _too_deep()
        except (UnicodeDecodeError, json.JSONDecodeError) as error:
            raise ParseError(f"The body is not JSON: {error}") from error
        except ValueError as error:
            # What Python says of a number that is too long is for programmers.
            raise ParseError("A number in the body has too many digits.") from error
        if not isinstance(data, dict):
            raise ParseError("Send a JSON object.")
        _check_depth(data)
        return data


class OnlyJson(BaseContentNegotiation):
    """Every answer is JSON: refusing a call over its Accept header helps nobody (RFC 9110, 12.4.1)."""

    def select_parser(self, request: Request, parsers: Any) -> Any:
        """The parser for the body's media type; None answers 415."""
        content_type = (request.content_type or "").split(";")[0].strip().lower()
        return next(
            (parser for parser in parsers if parser.media_type == content_type), None
        )

    def select_renderer(
        self, request: Request, renderers: Any, format_suffix: str | None = None
    ) -> tuple[BaseRenderer, str]:
        """The first renderer."""
        return renderers[0], renderers[0].media_type


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """The object of these pairs; one that names a key twice means something else to each of its readers."""
    found = dict(pairs)
    if len(found) < len(pairs):
        # Counting each name would take the square of their number: seconds for what a body can hold.
        twice = Counter(name for name, _ in pairs).most_common(1)[0][0]
        shown = twice[:100].encode("utf-8", "replace").decode()
        raise ParseError(f"The key “{shown}” stands twice in one object.")
    return found


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number.")


def _check_depth(data: Any) -> None:
    """Walk level by level, so that the check itself needs no depth."""
    level = [data]
    for _ in range(DEEPEST):
        level = [inner for outer in level for inner in _inner(outer)]
        if not level:
            return
    _too_deep()


def _inner(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return list(value.values())
    return value if isinstance(value, list) else []


def _too_deep() -> NoReturn:
    raise ParseError(f"The body is nested deeper than {DEEPEST} levels.")
