"""Refusals in Entra's own words: AADSTS numbers with trace, correlation and time."""

import json
import uuid
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from starlette.responses import JSONResponse

WORDS: dict[str, str] = json.loads(
    (Path(__file__).parent / "aadsts.json").read_text(encoding="utf-8")
)


class Refusal(Exception):
    """Entra says no: an OAuth error word, an AADSTS number and what fills its sentence."""

    def __init__(
        self, error: str, number: int, status: int = 400, **words: str
    ) -> None:
        super().__init__(f"AADSTS{number}: {WORDS[str(number)].format(**words)}")
        self.error = error
        self.number = number
        self.status = status

    def body(self) -> dict[str, Any]:
        """Return the JSON of the token endpoint."""
        trace, correlation = str(uuid.uuid4()), str(uuid.uuid4())
        when = datetime.now(UTC).strftime("%Y-%m-%d %H:%M:%SZ")
        ids = f"Trace ID: {trace} Correlation ID: {correlation} Timestamp: {when}"
        return {
            "error": self.error,
            "error_description": f"{self} {ids}",
            "error_codes": [self.number],
            "timestamp": when,
            "trace_id": trace,
            "correlation_id": correlation,
            "error_uri": f"https://login.microsoftonline.com/error?code={self.number}",
        }

    def response(self) -> JSONResponse:
        """Return the answer of the token endpoint."""
        return JSONResponse(self.body(), self.status)
