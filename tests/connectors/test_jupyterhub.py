"""JupyterHub's REST API: what the portal makes of answers that a real hub gives seldom, or not at all."""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from connectors import jupyterhub as connector
from connectors.errors import PermanentError, TemporaryError
from connectors.jupyterhub import HubServer, JupyterHub
from sandbox import certificates
from sandbox.serving import Served, listen, port_of
from tests.serving import serving

SERVER = {"name": "nb-1", "ready": True, "url": "/user/ada/nb-1/"}
Answering = Callable[[Request], Response]


@dataclass
class Answers:
    """Whatever a test has the server answer, and what it was asked."""

    answer: Answering = lambda _: Response(status_code=500)
    bodies: list[Any] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)

    async def handle(self, request: Request) -> Response:
        """Answer one call."""
        self.paths.append(request.scope["raw_path"].decode())
        text = await request.body()
        self.bodies.append(json.loads(text) if text else None)
        return self.answer(request)


@pytest.fixture(scope="module")
def served(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[tuple[Answers, JupyterHub]]:
    shown, socket, answers = (
        certificates.ensure(tmp_path_factory.mktemp("hub")),
        listen(0),
        Answers(),
    )
    routes = [Route("/{path:path}", answers.handle, methods=["GET", "POST", "DELETE"])]
    with serving(Served(Starlette(routes=routes), socket, shown)):
        host = f"localhost:{port_of(socket)}"
        yield (
            answers,
            JupyterHub(
                f"https://{host}",
                "secret-token",
                allowed=(host,),
                ca_file=str(shown.ca),
            ),
        )


@pytest.fixture
def answers(served: tuple[Answers, JupyterHub]) -> Answers:
    served[0].bodies.clear()
    served[0].paths.clear()
    return served[0]


@pytest.fixture
def hub(served: tuple[Answers, JupyterHub]) -> JupyterHub:
    return served[1]


def refusal(status: int, message: str = "No.", **headers: str) -> Answering:
    """A refusal as a hub words it."""
    return lambda _: JSONResponse(
        {"status": status, "message": message}, status, headers
    )


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        (refusal(401), "token_refused"),
        (refusal(403), "token_refused"),
        (refusal(404), "no_such_user"),
        (refusal(400), "invalid"),
        (lambda _: HTMLResponse("<h1>Welcome</h1>"), "not_a_hub"),
        (lambda _: HTMLResponse("<h1>Forbidden</h1>", 403), "not_a_hub"),
        (lambda _: HTMLResponse("<h1>Not found</h1>", 404), "not_a_hub"),
        (lambda _: RedirectResponse("https://elsewhere.example.com/"), "not_a_hub"),
        (lambda _: JSONResponse(["6.1.1"]), "not_a_hub"),
        (lambda _: JSONResponse({"version": 6}), "not_a_hub"),
        (
            lambda _: JSONResponse(
                {"kind": "Status", "status": "Failure", "message": "no"}, 404
            ),
            "not_a_hub",
        ),
        (lambda _: JSONResponse({"version": "4.1.6"}), "other_version"),
        (lambda _: JSONResponse({"version": "7.0.0b1"}), "other_version"),
        (lambda _: JSONResponse({"version": "60.1"}), "other_version"),
    ],
)
def test_what_asking_again_does_not_change(
    answers: Answers, hub: JupyterHub, answer: Answering, code: str
) -> None:
    answers.answer = answer
    with pytest.raises(PermanentError) as refused:
        hub.version()
    assert refused.value.code == code
    assert "secret-token" not in refused.value.message


@pytest.mark.parametrize(
    ("answer", "seconds"),
    [
        (refusal(429, **{"Retry-After": "40"}), 40.0),
        (refusal(503, **{"Retry-After": "soon"}), None),
        (refusal(500), None),
        (lambda _: HTMLResponse("bad gateway", 502), None),
        (lambda _: Response("x" * (connector.LARGEST_ANSWER + 1)), None),
    ],
)
def test_what_passes_by_itself(
    answers: Answers, hub: JupyterHub, answer: Answering, seconds: float | None
) -> None:
    answers.answer = answer
    with pytest.raises(TemporaryError) as refused:
        hub.version()
    assert refused.value.retry_after == seconds


def test_a_moment_to_come_back_at_is_honoured_like_seconds(
    answers: Answers, hub: JupyterHub
) -> None:
    later = datetime.now(UTC) + timedelta(seconds=90)
    answers.answer = refusal(
        503, **{"Retry-After": format_datetime(later, usegmt=True)}
    )
    with pytest.raises(TemporaryError) as refused:
        hub.version()
    assert refused.value.retry_after is not None
    assert 60 < refused.value.retry_after <= 90


@pytest.mark.parametrize("version", ["5.0.0", "5.4.1", "6.1.1", "6.2.0.dev1"])
def test_versions_five_and_six_are_known(
    answers: Answers, hub: JupyterHub, version: str
) -> None:
    answers.answer = lambda _: JSONResponse({"version": version})
    assert hub.version() == version


def test_version_five_gets_the_choices_alone(answers: Answers, hub: JupyterHub) -> None:
    """It takes the whole body for them."""
    answers.answer = lambda asked: (
        Response(status_code=202)
        if asked.method == "POST"
        else JSONResponse({"version": "5.4.1"})
    )
    assert not hub.start("ada", "nb-1", title="Title", options={"profile": "cpu"})
    assert answers.bodies[-1] == {"profile": "cpu"}


def test_a_start_is_over_only_when_the_server_is_ready(
    answers: Answers, hub: JupyterHub
) -> None:
    """A hub answers 201 to a start that goes on, when the one before it had failed."""

    def answer(asked: Request) -> Response:
        if asked.method == "POST":
            return Response(status_code=201)
        if asked.url.path.endswith("/hub/api/"):
            return JSONResponse({"version": "6.1.1"})
        return JSONResponse(
            {"name": "ada", "servers": {"nb-1": SERVER | {"ready": False}}}
        )

    answers.answer = answer
    assert not hub.start("ada", "nb-1", title="Title", options={"profile": "cpu"})
    assert {
        "display_name": "Title",
        "user_options": {"profile": "cpu"},
    } in answers.bodies


def test_a_server_that_still_stops_is_started_later(
    answers: Answers, hub: JupyterHub
) -> None:
    def answer(asked: Request) -> Response:
        if asked.method == "POST":
            return refusal(400, "ada:nb-1 is pending stop")(asked)
        if asked.url.path.endswith("/hub/api/"):
            return JSONResponse({"version": "6.1.1"})
        return JSONResponse(
            {
                "name": "ada",
                "servers": {"nb-1": SERVER | {"ready": False, "pending": "stop"}},
            }
        )

    answers.answer = answer
    with pytest.raises(TemporaryError, match="still stopping"):
        hub.start("ada", "nb-1", title="", options={})


def test_all_pages_are_read_without_going_where_an_answer_points(
    answers: Answers, hub: JupyterHub
) -> None:
    def answer(asked: Request) -> Response:
        offset = int(asked.query_params["offset"])
        people = [
            {"name": f"person-{offset + n}", "servers": {"nb-1": SERVER}}
            for n in range(2)
        ]
        more = {
            "offset": offset + 2,
            "limit": 2,
            "url": "https://elsewhere.example.com/",
        }
        return JSONResponse(
            {"items": people, "_pagination": {"next": more if offset < 4 else None}}
        )

    answers.answer = answer
    assert [one.username for one in hub.servers()] == [
        f"person-{number}" for number in range(6)
    ]


def test_an_endless_list_is_given_up(
    answers: Answers, hub: JupyterHub, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connector, "MAX_PAGES", 3)
    answers.answer = lambda _: JSONResponse(
        {"items": [], "_pagination": {"next": {"offset": 0}}}
    )
    with pytest.raises(TemporaryError):
        hub.servers()
    assert len(answers.paths) == 3


@pytest.mark.parametrize(
    "told",
    [
        {"items": "all", "_pagination": {"next": None}},
        {
            "items": [{"name": "ada", "servers": {"nb-1": {"name": "nb-1"}}}],
            "_pagination": {"next": None},
        },
        {
            "items": [{"name": "ada", "servers": [SERVER]}],
            "_pagination": {"next": None},
        },
        {"items": [{"servers": {"nb-1": SERVER}}], "_pagination": {"next": None}},
        {"items": []},
        [],
        None,
    ],
)
def test_a_list_of_another_shape_is_no_hubs(
    answers: Answers, hub: JupyterHub, told: Any
) -> None:
    answers.answer = lambda _: JSONResponse(told)
    with pytest.raises(PermanentError) as refused:
        hub.servers()
    assert refused.value.code == "not_a_hub"


def test_names_stay_within_their_part_of_the_address(
    answers: Answers, hub: JupyterHub
) -> None:
    answers.answer = refusal(404)
    assert hub.stop("../admin", "a/b?c")
    assert answers.paths == ["/hub/api/users/..%2Fadmin/servers/a%2Fb%3Fc"]
    hub.stop("ada", "")
    assert answers.paths[-1] == "/hub/api/users/ada/server"
    assert answers.bodies == [{"remove": True}, {}]
    for name in ("", ".", ".."):
        with pytest.raises(PermanentError) as refused:
            hub.ensure_user(name)
        assert refused.value.code == "invalid"
    assert len(answers.paths) == 2


def test_what_the_hub_leaves_out_is_empty() -> None:
    least = HubServer.of("ada", SERVER)
    assert (least.title, least.pending, least.pod, least.started_at) == (
        "",
        "",
        "",
        None,
    )
    told = SERVER | {
        "display_name": "Ada's",
        "pending": "spawn",
        "started": "2026-03-02T09:00:00.5Z",
        "last_activity": "2026-03-02T10:00:00",
        "url": "https://ada.hub.example.com/user/ada/nb-1/",
        "state": {"pod_name": "jupyter-ada"},
        "user_options": {"profile": "cpu"},
    }
    whole = HubServer.of("ada", told)
    assert whole.path == "/user/ada/nb-1/"
    assert whole.started_at == datetime(2026, 3, 2, 9, 0, 0, 500_000, tzinfo=UTC)
    assert whole.active_at == datetime(2026, 3, 2, 10, tzinfo=UTC)
    assert (whole.pod, whole.pending, whole.options) == (
        "jupyter-ada",
        "spawn",
        {"profile": "cpu"},
    )


@pytest.mark.parametrize(
    "stream",
    [
        "",
        "data: nothing\n\n",
        "data: []\n\n",
        'data: {"progress": 100, "ready": true}\n\n',
    ],
)
def test_a_stream_that_tells_of_no_failure_is_none(
    answers: Answers, hub: JupyterHub, stream: str
) -> None:
    stopped = SERVER | {"ready": False, "stopped": True}
    answers.answer = lambda asked: (
        Response(stream)
        if asked.url.path.endswith("/progress")
        else JSONResponse({"name": "ada", "servers": {"nb-1": stopped}})
    )
    assert hub.failure("ada", "nb-1") == ""


@pytest.mark.parametrize(
    "address",
    [
        "http://127.0.0.1:1",
        "https://",
        "https://127.0.0.1",
        "https://[::1",
        "https://a@b",
        "ftp://hub.example.com",
        "",
    ],
)
def test_addresses_that_are_never_called(address: str) -> None:
    with pytest.raises(PermanentError) as refused:
        JupyterHub(address, "token").version()
    assert refused.value.code == "bad_address"


def test_nobody_listens() -> None:
    socket = listen(0)
    host = f"127.0.0.1:{port_of(socket)}"
    socket.close()
    with pytest.raises(TemporaryError):
        JupyterHub(f"https://{host}", "token", allowed=(host,)).version()


def test_the_token_is_shown_nowhere() -> None:
    assert "secret" not in repr(JupyterHub("https://hub.example.com", "secret"))
