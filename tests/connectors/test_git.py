"""Repositories: what is read and pushed over a folder, HTTPS and SSH, and what is never called, told or overwritten."""

import traceback
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from io import StringIO
from pathlib import Path

import pytest
from paramiko import ECDSAKey

from connectors import git
from connectors.errors import PermanentError, TemporaryError
from connectors.git import Moved, NotAFile, Repository, Signed
from connectors.git_address import BadAddress, Remote, is_branch, read
from connectors.github import GitHub
from tests.remotes import Bare, Served, bare, over_https, over_ssh

NOW = datetime(2026, 11, 21, 9, tzinfo=UTC)
SIGNED = Signed("Say what changed", "Quartermaster <qm@example.com>", NOW)
CANARY = "canary-5f1d2a"


@pytest.fixture(scope="module", params=["local", "https", "ssh"])
def served(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Path, Remote]]:
    """A folder of repositories, and a remote whose address ends where the repository's name begins."""
    folder, keys = (
        tmp_path_factory.mktemp("repositories"),
        tmp_path_factory.mktemp("keys"),
    )
    if request.param == "local":
        yield folder, Remote(f"{folder}/", folder=folder)
    elif request.param == "https":
        with over_https(folder, keys, token=CANARY) as https:
            yield folder, _https(https)
    else:
        with over_ssh(folder) as ssh:
            yield (
                folder,
                Remote(
                    f"ssh://git@{ssh.host}/",
                    secret=ssh.secret,
                    known_hosts=ssh.known_hosts,
                    allowed=[ssh.host],
                ),
            )


def _https(https: Served) -> Remote:
    return Remote(
        f"https://{https.host}/",
        secret=https.secret,
        allowed=[https.host],
        ca_file=https.ca_file,
    )


@pytest.fixture
def pair(
    served: tuple[Path, Remote], request: pytest.FixtureRequest
) -> tuple[Bare, Repository]:
    """An empty repository and our view of it."""
    folder, remote = served
    name = f"{abs(hash(request.node.name)):x}.git"
    return bare(folder, name), Repository(replace(remote, url=remote.url + name))


def test_a_commit_arrives_with_its_author_and_only_what_changed(
    pair: tuple[Bare, Repository],
) -> None:
    theirs, ours = pair
    empty = ours.look("main")
    assert (empty.sha, empty.read("a/b.txt"), empty.names("")) == ("", None, [])
    sha = ours.commit(
        empty, {"a/b.txt": b"one\n", "c.txt": b"two\n"}, SIGNED, branch="main"
    )
    assert theirs.tip() == sha
    assert theirs.files() == {"a/b.txt": b"one\n", "c.txt": b"two\n"}
    assert (theirs.log(), theirs.author()) == (
        ["Say what changed"],
        "Quartermaster <qm@example.com>",
    )
    theirs.push({"theirs.txt": b"kept\n"})
    seen = ours.look("main")
    assert (seen.read("theirs.txt"), seen.read("a/b.txt"), seen.names("a")) == (
        b"kept\n",
        b"one\n",
        ["b.txt"],
    )
    ours.commit(seen, {"a/b.txt": None, "a/d/e.txt": b"three\n"}, SIGNED, branch="main")
    assert theirs.files() == {
        "a/d/e.txt": b"three\n",
        "c.txt": b"two\n",
        "theirs.txt": b"kept\n",
    }
    assert len(theirs.log()) == 3


@pytest.mark.slow
def test_who_was_slower_changes_nothing(pair: tuple[Bare, Repository]) -> None:
    theirs, ours = pair
    seen = ours.look("main")
    theirs.push({"first.txt": b"1"})
    with pytest.raises(Moved):
        ours.commit(seen, {"second.txt": b"2"}, SIGNED, branch="main")
    seen = ours.look("main")
    theirs.push({"third.txt": b"3"})
    with pytest.raises(Moved):
        ours.commit(seen, {"second.txt": b"2"}, SIGNED, branch="main")
    assert theirs.files() == {"first.txt": b"1", "third.txt": b"3"}
    assert (
        ours.commit(ours.look("main"), {"second.txt": b"2"}, SIGNED, branch="main")
        == theirs.tip()
    )


def test_a_history_that_was_forced_is_looked_at_anew(
    pair: tuple[Bare, Repository],
) -> None:
    theirs, ours = pair
    ours.commit(ours.look("main"), {"a.txt": b"1"}, SIGNED, branch="main")
    theirs.push({"other.txt": b"9"}, anew=True)
    seen = ours.look("main")
    assert (seen.read("a.txt"), seen.read("other.txt")) == (None, b"9")
    ours.commit(seen, {"a.txt": b"1"}, SIGNED, branch="main")
    assert theirs.files() == {"a.txt": b"1", "other.txt": b"9"}


@pytest.mark.slow
def test_a_branch_of_ours_is_put_onto_another_commit(
    pair: tuple[Bare, Repository],
) -> None:
    theirs, ours = pair
    theirs.push({"a.txt": b"1"})
    main = ours.look("main")
    first = ours.commit(main, {"b.txt": b"2"}, SIGNED, branch="ours/x", onto="")
    theirs.push({"a.txt": b"3"})
    second = ours.commit(
        ours.look("main"), {"b.txt": b"4"}, SIGNED, branch="ours/x", onto=first
    )
    assert theirs.tip("ours/x") == second
    assert theirs.files("ours/x") == {"a.txt": b"3", "b.txt": b"4"}
    assert len(theirs.log("ours/x")) == 3
    with pytest.raises(Moved):
        ours.commit(
            ours.look("main"), {"b.txt": b"5"}, SIGNED, branch="ours/x", onto=first
        )


def test_what_was_looked_at_is_built_upon_though_all_else_was_forgotten(
    pair: tuple[Bare, Repository], monkeypatch: pytest.MonkeyPatch
) -> None:
    theirs, ours = pair
    monkeypatch.setattr(git, "FETCHES_KEPT", 1)
    theirs.push({"a.txt": b"1", "b/c.txt": b"2"})
    main = ours.look("main")
    assert ours.look("ours/x").sha == ""
    sha = ours.commit(main, {"b/d.txt": b"3"}, SIGNED, branch="ours/x", onto="")
    assert theirs.tip("ours/x") == sha
    assert theirs.files("ours/x") == {"a.txt": b"1", "b/c.txt": b"2", "b/d.txt": b"3"}


@pytest.mark.slow
def test_a_branch_of_ours_goes_if_nobody_has_moved_it(
    pair: tuple[Bare, Repository],
) -> None:
    theirs, ours = pair
    theirs.push({"a.txt": b"1"})
    first = ours.commit(
        ours.look("main"), {"b.txt": b"2"}, SIGNED, branch="ours/x", onto=""
    )
    theirs.push({"c.txt": b"3"}, branch="ours/x")
    with pytest.raises(Moved):
        ours.remove("ours/x", at=first)
    ours.remove("ours/x", at=ours.look("ours/x").sha)
    assert (theirs.tip("ours/x"), ours.look("ours/x").sha, theirs.files()) == (
        "",
        "",
        {"a.txt": b"1"},
    )
    with pytest.raises(Moved):
        ours.remove("ours/x", at=first)
    assert ours.commit(
        ours.look("main"), {"b.txt": b"2"}, SIGNED, branch="ours/x", onto=""
    ) == theirs.tip("ours/x")


def test_what_is_no_plain_file_is_said(pair: tuple[Bare, Repository]) -> None:
    theirs, ours = pair
    theirs.push({"a/b.txt": b"1"})
    theirs.push({"link": b"/etc/passwd"}, mode=0o120000)
    seen = ours.look("main")
    for path in ("a", "link", "a/b.txt/c"):
        with pytest.raises(NotAFile):
            seen.read(path)
    with pytest.raises(NotAFile):
        seen.names("a/b.txt")


def test_a_repository_that_is_not_there_is_said(served: tuple[Path, Remote]) -> None:
    _, remote = served
    with pytest.raises((PermanentError, TemporaryError)) as refused:
        Repository(replace(remote, url=remote.url + "none.git")).look("main")
    assert "none.git" in refused.value.message


def test_nothing_that_opens_it_is_ever_told(tmp_path: Path) -> None:
    folder = tmp_path / "r"
    bare(folder)
    with over_https(folder, tmp_path, token="another") as https:
        remote = replace(
            _https(https), url=f"https://{https.host}/fleet.git", secret=CANARY
        )
        with pytest.raises(PermanentError) as refused:
            Repository(remote).look("main")
        assert refused.value.code == "unauthorized"
        for status in ("403 Forbidden", "404 Not Found", "302 Found", "418 Teapot"):
            https.answers.append(status)
            with pytest.raises(PermanentError) as refused:
                Repository(remote).look("main")
            assert (
                CANARY not in repr(refused.value) + repr(remote) + refused.value.message
            )
        for status in ("503 Busy", "429 Slow", "500 Broken"):
            https.answers.append(status)
            with pytest.raises(TemporaryError):
                Repository(remote).look("main")
        asked = len(https.requests)
    with pytest.raises(TemporaryError) as unreachable:
        Repository(remote).look("main")
    assert CANARY not in repr(unreachable.value)
    assert asked == 8


def test_a_push_that_nobody_says_was_taken_is_none(tmp_path: Path) -> None:
    folder = tmp_path / "r"
    theirs = bare(folder)
    theirs.push({"a.txt": b"1"})
    with over_https(folder, tmp_path, token=CANARY) as https:
        ours = Repository(replace(_https(https), url=f"https://{https.host}/fleet.git"))
        seen = ours.look("main")
        https.swallows = True
        with pytest.raises(TemporaryError) as unsaid:
            ours.commit(seen, {"b.txt": b"2"}, SIGNED, branch="main")
        assert (
            unsaid.value.message
            == f"{https.host.partition(':')[0]}/fleet.git gave no answer that can be used."
        )
        with pytest.raises(TemporaryError):
            ours.remove("main", at=seen.sha)
        https.swallows = False
        assert ours.commit(seen, {"b.txt": b"2"}, SIGNED, branch="main") == theirs.tip()


@pytest.mark.parametrize(
    "secret", [f"{CANARY}\nnext", f"robot:{CANARY}\r", f"{CANARY}é", f"{CANARY} x"]
)
def test_what_cannot_be_a_token_is_neither_sent_nor_told(
    tmp_path: Path, secret: str
) -> None:
    with over_https(tmp_path, tmp_path, token=CANARY) as https:
        remote = replace(
            _https(https), url=f"https://{https.host}/platform/fleet.git", secret=secret
        )
        with pytest.raises(PermanentError) as refused:
            GitHub(remote).newest(head="ours/x", base="main")
        asked = list(https.requests)
    told = "".join(traceback.format_exception(refused.value))
    assert (refused.value.code, CANARY in told, asked) == ("no_token", False, [])


def test_a_certificate_that_is_not_trusted_ends_it(tmp_path: Path) -> None:
    folder = tmp_path / "r"
    bare(folder)
    with over_https(folder, tmp_path, token=CANARY) as https:
        remote = replace(
            _https(https), url=f"https://{https.host}/fleet.git", ca_file=None
        )
        with pytest.raises(TemporaryError):
            Repository(remote).look("main")
        assert https.requests == []


def test_a_host_that_is_not_known_gets_no_key(tmp_path: Path) -> None:
    folder = tmp_path / "r"
    bare(folder)
    with over_ssh(folder) as ssh, over_ssh(folder) as other:
        url = f"ssh://git@{ssh.host}/fleet.git"
        strange = Remote(url, secret=ssh.secret, allowed=[ssh.host])
        swapped = replace(
            strange,
            known_hosts=other.known_hosts.replace(str(other.port), str(ssh.port)),
        )
        wrong = replace(strange, known_hosts=ssh.known_hosts, secret=other.secret)
        broken = replace(wrong, secret=CANARY)
        codes = []
        for remote in (strange, swapped, wrong, broken):
            with pytest.raises(PermanentError) as refused:
                Repository(remote).look("main")
            assert CANARY not in repr(refused.value)
            codes.append(refused.value.code)
    assert codes == ["unknown_host", "unauthorized", "unauthorized", "no_key"]


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "10.0.0.8", "169.254.169.254", "[::1]", "[fd00:ec2::254]"]
)
@pytest.mark.parametrize("scheme", ["https://", "ssh://git@"])
def test_no_inner_address_is_called(scheme: str, host: str) -> None:
    key, text = ECDSAKey.generate(), StringIO()
    key.write_private_key(text)
    secret = text.getvalue() if "ssh" in scheme else CANARY
    known = f"{host.strip('[]')} {key.get_name()} {key.get_base64()}"
    with pytest.raises(PermanentError) as refused:
        Repository(
            Remote(f"{scheme}{host}/x/y.git", secret=secret, known_hosts=known)
        ).look("main")
    assert refused.value.code == "bad_address"


def test_what_hands_out_credentials_is_never_called_even_if_allowed() -> None:
    remote = Remote("https://169.254.169.254/x.git", allowed=["169.254.169.254"])
    with pytest.raises(PermanentError) as refused:
        Repository(remote).look("main")
    assert refused.value.code == "bad_address"


@pytest.mark.parametrize(
    "url",
    [
        "",
        "file:///etc",
        "ext::sh -c id",
        "http://github.com/a/b",
        "git://github.com/a/b",
        "--upload-pack=id",
        "-oProxyCommand=id",
        "https://user:secret@github.com/a/b",
        "https://secret@github.com/a/b",
        "ssh://git:secret@github.com/a",
        "ssh://github.com/a",
        "ssh://-oProxyCommand=id/a",
        "ssh://-o@github.com/a",
        "https://github.com/../b",
        "https://github.com/a/../b",
        "https://github.com/-a/b",
        "https://github.com",
        "https://github.com/a?b=secret",
        "https://github.com/a#b",
        "https://github.com/a b",
        "https://github.com/a\nb",
        "https://github.com/a\\b",
        "https://github.com:x/a",
        "ssh://git@github.com/a'b",
        "ssh://git@github.com/$(id)",
        "/etc/passwd",
        "/srv/git/../../etc",
        "/srv/git",
        "/srv/gitty/a.git",
        "github.com/a/b",
        "C:\\a",
        "git@-x:a/b",
    ],
)
def test_an_address_is_https_ssh_or_in_the_folder(url: str) -> None:
    with pytest.raises(BadAddress) as refused:
        read(url, folder=Path("/srv/git"))
    assert "secret" not in refused.value.message


def test_a_link_out_of_the_folder_is_no_way_out(tmp_path: Path) -> None:
    folder = tmp_path / "git"
    outside = bare(tmp_path, "outside.git").path
    folder.mkdir()
    (folder / "a.git").symlink_to(outside)
    with pytest.raises(BadAddress):
        read(f"{folder}/a.git", folder=folder)
    with pytest.raises(BadAddress):
        read(str(outside), folder=None)


def test_addresses_of_the_usual_shapes_are_read() -> None:
    place = read("git@github.com:platform/fleet.git", folder=None)
    assert (place.scheme, place.user, place.host, place.port, place.path) == (
        "ssh",
        "git",
        "github.com",
        22,
        "platform/fleet.git",
    )
    place = read("https://github.com/platform/fleet.git", folder=None)
    assert (place.base, place.path) == ("https://github.com", "/platform/fleet.git")


@pytest.mark.parametrize(
    ("name", "good"),
    [
        ("main", True),
        ("release/2026-11", True),
        ("a.b_c", True),
        ("", False),
        ("-d", False),
        ("a..b", False),
        ("a//b", False),
        ("a/", False),
        ("/a", False),
        ("a.lock", False),
        ("a b", False),
        ("a\nb", False),
        ("a~1", False),
        ("a:b", False),
        ("HEAD", False),
        ("@{u}", False),
        ("x" * 101, False),
    ],
)
def test_a_branch_has_a_plain_name(name: str, good: bool) -> None:
    assert is_branch(name) is good


def test_a_repository_that_may_not_be_written_or_is_locked_is_said(
    tmp_path: Path,
) -> None:
    theirs = bare(tmp_path)
    theirs.push({"a.txt": b"1"})
    ours = Repository(Remote(str(theirs.path), folder=tmp_path))
    seen = ours.look("main")
    lock = theirs.path / "refs" / "heads" / "main.lock"
    lock.write_bytes(b"")
    with pytest.raises(TemporaryError, match="locked"):
        ours.commit(seen, {"b.txt": b"2"}, SIGNED, branch="main")
    lock.unlink()
    assert theirs.files() == {"a.txt": b"1"}
    assert ours.commit(seen, {"b.txt": b"2"}, SIGNED, branch="main") == theirs.tip()
