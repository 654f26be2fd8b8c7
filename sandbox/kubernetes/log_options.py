"""What a request asks of a log, and what is refused of it before anybody looks for the pod."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from sandbox.kubernetes.causes import Cause, forbidden_field, invalid_value
from sandbox.kubernetes.status import Refusal, bad_request

_LAYOUT = "2006-01-02T15:04:05Z07:00"
_RFC3339 = re.compile(
    r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)", re.ASCII
)
_INTEGER = re.compile(r"[+-]?\d{1,18}", re.ASCII)


@dataclass(frozen=True)
class LogOptions:
    """The query of a request for a log; None where it says nothing."""

    container: str
    follow: bool
    previous: bool
    timestamps: bool
    tail: int | None
    limit: int | None
    since_seconds: int | None
    since_time: datetime | None


def read(query: Mapping[str, str], pod: str) -> LogOptions:
    """The options of a query; raises 400 for what cannot be read and 422 for what makes no sense."""
    options = LogOptions(
        query.get("container", ""),
        _flag(query.get("follow", "")),
        _flag(query.get("previous", "")),
        _flag(query.get("timestamps", "")),
        whole_number(query.get("tailLines", "")),
        whole_number(query.get("limitBytes", "")),
        whole_number(query.get("sinceSeconds", "")),
        _time(query.get("sinceTime", "")),
    )
    if causes := _wrong(options):
        text = "; ".join(f"{one['field']}: {one['message']}" for one in causes)
        details = {"name": pod, "kind": "PodLogOptions", "causes": causes}
        raise Refusal(
            422, f'PodLogOptions "{pod}" is invalid: {text}', "Invalid", details
        )
    return options


def _wrong(options: LogOptions) -> list[Cause]:
    causes = []
    if options.tail is not None and options.tail < 0:
        causes.append(
            invalid_value(
                "tailLines", options.tail, "must be greater than or equal to 0"
            )
        )
    if options.limit is not None and options.limit < 1:
        causes.append(
            invalid_value("limitBytes", options.limit, "must be greater than 0")
        )
    if options.since_seconds is not None and options.since_time is not None:
        causes.append(
            forbidden_field(
                "[]", "at most one of `sinceTime` or `sinceSeconds` may be specified"
            )
        )
    elif options.since_seconds is not None and options.since_seconds < 1:
        causes.append(
            invalid_value(
                "sinceSeconds", options.since_seconds, "must be greater than 0"
            )
        )
    return causes


def _flag(text: str) -> bool:
    return text not in {"", "0", "false", "False"}


def whole_number(text: str) -> int | None:
    """A number of a query, None where it is empty; raises 400 for what is none."""
    if not text:
        return None
    if not _INTEGER.fullmatch(text):
        raise bad_request(f'strconv.ParseInt: parsing "{text}": invalid syntax')
    return int(text)


def _time(text: str) -> datetime | None:
    if not text:
        return None
    if not _RFC3339.fullmatch(text):
        raise bad_request(
            f'parsing time "{text}" as "{_LAYOUT}": cannot parse "{text}" as "2006"'
        )
    try:
        return datetime.fromisoformat(text)
    except ValueError as error:
        raise bad_request(f'parsing time "{text}": {error}') from error
