"""Static files as the ASGI server answers them: whole, in part, unchanged, and without a warning in its log."""

import warnings
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings

from portal.http.handler import OneThreadHandler
from tests.recordings.calling import call

FILE = Path(settings.BASE_DIR) / "static" / "icons.svg"


@pytest.fixture
def server(settings: Any) -> Any:
    """The portal as it is served in the demo, where files are found without being collected."""
    settings.WHITENOISE_USE_FINDERS = True
    return OneThreadHandler()


def ask(
    server: Any, method: str = "GET", **headers: str
) -> tuple[int, dict[str, str], bytes]:
    """Status, headers and body of the file; whatever would be written to the log as a warning is an error."""
    said = {name.replace("_", "-"): value for name, value in headers.items()}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        reply = call(server, method, "/static/icons.svg", {}, said, b"")
    found = {name.lower(): value for name, value in reply.headers.items()}
    return reply.status, found, reply.body


def test_a_file_is_answered_whole_without_a_warning(server: Any) -> None:
    status, headers, body = ask(server)
    assert (status, body) == (200, FILE.read_bytes())
    assert (headers["content-type"], headers["content-length"]) == (
        "image/svg+xml",
        str(len(body)),
    )
    assert headers["x-content-type-options"] == "nosniff"


def test_the_head_of_a_file_says_its_length_alone(server: Any) -> None:
    status, headers, body = ask(server, "HEAD")
    assert (status, headers["content-length"], body) == (
        200,
        str(FILE.stat().st_size),
        b"",
    )


def test_a_part_of_a_file_is_answered_when_it_is_asked_for(server: Any) -> None:
    status, headers, body = ask(server, range="bytes=4-9")
    assert (status, body) == (206, FILE.read_bytes()[4:10])
    assert headers["content-range"] == f"bytes 4-9/{FILE.stat().st_size}"
    assert ask(server, range="bytes=99999999-")[0] == 416


def test_a_file_that_is_known_is_not_sent_again(server: Any) -> None:
    status, _, body = ask(server, if_modified_since=ask(server)[1]["last-modified"])
    assert (status, body) == (304, b"")


def test_files_are_only_read(server: Any) -> None:
    assert ask(server, "POST")[0] == 405
