"""Signing in: where the token is kept, who may read it, to whom it is sent, and where it is never shown."""

import stat
from pathlib import Path

import pytest

from qm import configuration
from qm.configuration import Access
from qm.endings import Ended
from tests.qm.conftest import Terminal
from tests.qm.misbehaving import Misbehaving, problem

ME = {"name": "Ada Okafor", "teams": [{"slug": "vision", "name": "Vision"}]}
RUNS: dict[str, object] = {"next": None, "previous": None, "results": []}
TOKEN = "qm_1a2b3c4d_secret"


@pytest.fixture
def portal(server: Misbehaving, terminal: Terminal) -> Misbehaving:
    """A portal that knows Ada, who has not signed in yet."""
    terminal.environment |= {"QM_URL": None, "QM_TOKEN": None}
    server.says("GET me/", ME)
    server.says("GET runs/", RUNS)
    return server


def file_of(terminal: Terminal) -> Path:
    return terminal.home / "quartermaster" / "config.toml"


@pytest.mark.parametrize(
    "words", [("--token-stdin",), ()], ids=["from standard input", "asked for"]
)
def test_a_token_is_checked_and_kept_for_its_owner_alone(
    portal: Misbehaving, terminal: Terminal, words: tuple[str, ...]
) -> None:
    done = terminal("login", "--url", f"{portal.url}/", *words, given=f"{TOKEN}\n")

    assert (done.exit_code, done.stdout) == (0, "")
    assert done.stderr.endswith(
        f"Signed in to {portal.url} as Ada Okafor. Teams: Vision.\n"
    )
    assert "secret" not in done.output
    file = file_of(terminal)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    assert file.read_text() == f'url = "{portal.url}"\ntoken = "{TOKEN}"\n'
    assert [one.name for one in file.parent.iterdir()] == ["config.toml"]
    assert terminal("list").exit_code == 0
    assert portal.sent("GET runs/")[0].headers["Authorization"] == f"Bearer {TOKEN}"


def test_what_is_kept_is_replaced_whole_or_not_at_all(
    portal: Misbehaving, terminal: Terminal
) -> None:
    terminal("login", "--url", portal.url, "--token-stdin", given=TOKEN)
    before = file_of(terminal).read_text()
    portal.answers["GET me/"] = [problem(401, "no_token", "No such token.")]

    done = terminal(
        "login", "--url", portal.url, "--token-stdin", given="qm_other_secret"
    )

    assert done.exit_code == 4
    assert file_of(terminal).read_text() == before
    assert terminal("logout").stderr == "The token is forgotten.\n"
    assert not file_of(terminal).exists()
    assert terminal("logout").stderr == "There was no token.\n"
    assert terminal("list").exit_code == 4


def test_a_token_goes_to_no_other_portal_than_its_own(
    portal: Misbehaving, terminal: Terminal
) -> None:
    terminal("login", "--url", portal.url, "--token-stdin", given=TOKEN)
    other = portal.url.replace("127.0.0.1", "localhost")

    done = terminal("list", QM_URL=other)

    assert done.exit_code == 4
    assert not portal.sent("GET runs/")
    assert terminal("list", QM_TOKEN="qm_mine").exit_code == 0
    assert terminal("list", QM_URL=other, QM_TOKEN="qm_theirs").exit_code == 0
    sent = [one.headers["Authorization"] for one in portal.sent("GET runs/")]
    assert sent == ["Bearer qm_mine", "Bearer qm_theirs"]


@pytest.mark.parametrize(
    "url",
    [
        "http://gpus.example.com",
        "http://10.0.0.1",
        "gpus.example.com",
        "https://me:pw@gpus.example.com",
        "ftp://x",
    ],
)
def test_a_token_is_asked_for_no_address_that_would_not_protect_it(
    terminal: Terminal, url: str
) -> None:
    assert terminal("login", "--url", url, "--token-stdin", given=TOKEN).exit_code == 2
    assert terminal("list", QM_URL=url, QM_TOKEN=TOKEN).exit_code == 2


def test_a_password_that_netrc_has_for_the_host_takes_no_tokens_place(
    portal: Misbehaving, terminal: Terminal
) -> None:
    terminal.home.mkdir()
    (terminal.home / ".netrc").write_text("machine 127.0.0.1 login ada password pw\n")
    (terminal.home / ".netrc").chmod(0o600)
    assert terminal("list", QM_URL=portal.url, QM_TOKEN=TOKEN).exit_code == 0
    assert portal.sent("GET runs/")[0].headers["Authorization"] == f"Bearer {TOKEN}"


@pytest.mark.parametrize("given", ["", "\n", "two words\x00\n"])
def test_what_is_no_token_is_not_sent(
    portal: Misbehaving, terminal: Terminal, given: str
) -> None:
    assert (
        terminal("login", "--url", portal.url, "--token-stdin", given=given).exit_code
        == 2
    )
    assert not portal.calls


@pytest.mark.parametrize("url", ["http://10.0.0.1", "http://gpus.example.com"])
def test_plain_http_is_for_loopback_alone(url: str) -> None:
    assert configuration.checked("http://127.0.0.1:8000/") == "http://127.0.0.1:8000"
    with pytest.raises(Ended, match="over https only"):
        configuration.checked(url)


@pytest.mark.parametrize("more", ["/requests", "/teams/vision/", "/#runs"])
def test_a_portals_address_has_no_path(
    portal: Misbehaving, terminal: Terminal, more: str
) -> None:
    done = terminal("list", QM_URL=f"{portal.url}{more}", QM_TOKEN=TOKEN)
    assert done.exit_code == 2
    assert "Leave out what follows the host in QM_URL or --url" in done.stderr
    assert done.stderr.rstrip().endswith(portal.url)
    assert not portal.calls


def test_a_stored_token_is_of_no_use_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        configuration,
        "stored",
        lambda: {"url": "https://a.example.com", "token": TOKEN},
    )
    monkeypatch.delenv("QM_TOKEN", raising=False)
    monkeypatch.setenv("QM_URL", "https://a.example.com/")
    assert configuration.access() == Access("https://a.example.com", TOKEN)
    assert TOKEN not in repr(configuration.access())
    monkeypatch.setenv("QM_URL", "https://b.example.com")
    with pytest.raises(Ended, match="not signed in"):
        configuration.access()


def test_a_file_that_cannot_be_read_is_said(terminal: Terminal) -> None:
    file_of(terminal).mkdir(parents=True)
    done = terminal("list")
    assert done.exit_code == 4
    assert "cannot be read" in done.stderr
