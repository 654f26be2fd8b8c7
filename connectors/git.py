"""Git repositories over HTTPS, SSH or a folder, with dulwich: no program is started and no working copy is kept.

The tip of a branch is fetched without its history into memory; a commit is made of the few objects that change, and
pushed only onto the very commit that was looked at.
"""

import re
import stat
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any, cast

from dulwich.client import (
    GitClient,
    HTTPUnauthorized,
    LocalGitClient,
    SSHGitClient,
    SSHVendor,
    Urllib3HttpGitClient,
)
from dulwich.errors import GitProtocolError, HangupException, NotGitRepository
from dulwich.file import FileLocked
from dulwich.object_store import (
    BaseObjectStore,
    MemoryObjectStore,
    OverlayObjectStore,
    commit_tree_changes,
)
from dulwich.objects import ZERO_SHA, Blob, Commit, ObjectID, Tree
from dulwich.pack import pack_objects_to_data
from dulwich.refs import Ref
from dulwich.repo import MemoryRepo

from connectors.errors import ConnectorError, PermanentError, TemporaryError
from connectors.git_address import Place, Remote
from connectors.pinned import at_end, pool, within
from connectors.ssh import Ssh

DEADLINE_SECONDS = 60.0
FETCHES_KEPT = 200
STATIC_REF = "refs/heads/main"
FILE = 0o100644
# Any name does beside a token.
ANYBODY = "x-access-token"
STATUS = re.compile(r"unexpected http resp (\d{3})")
BUSY = frozenset({"408", "425", "429", "500", "502", "503", "504"})
UNSAID = re.compile(r"[^\x20-\x7e]+")
# How servers say that somebody else was faster.
BEHIND = (
    "fetch first",
    "non-fast-forward",
    "stale info",
    "cannot lock ref",
    "failed to update ref",
    "unable to set",
    "unable to remove",
    "reference already exists",
    "incorrect old value",
    "atomic push failed",
    "failed to lock",
)


class Moved(TemporaryError):
    """The branch is not where it was when it was looked at; nothing was changed."""

    def __init__(self, shown: str) -> None:
        super().__init__(f"{shown} was written to by somebody else at the same moment.")


class NotAFile(ValueError):
    """Something lies at a path of the repository that is no plain file or folder there; the text is the path."""


@dataclass(frozen=True)
class Snapshot:
    """The files of a branch as one commit has them; `sha` is empty while there is no branch."""

    sha: str
    _store: BaseObjectStore

    def read(self, path: str) -> bytes | None:
        """A file's bytes, None where nothing is; raises NotAFile for a folder, link or submodule."""
        folder, _, name = path.rpartition("/")
        tree = self._tree(folder)
        if tree is None or name.encode() not in tree:
            return None
        mode, sha = tree[name.encode()]
        if not stat.S_ISREG(mode):
            raise NotAFile(path)
        blob = self._store[sha]
        return blob.data if isinstance(blob, Blob) else None

    def names(self, folder: str) -> list[str]:
        """The names in a folder, none where nothing is; raises NotAFile where a file is in its place."""
        tree = self._tree(folder)
        return (
            []
            if tree is None
            else [entry.path.decode("utf-8", "replace") for entry in tree.iteritems()]
        )

    def _tree(self, folder: str) -> Tree | None:
        if not self.sha:
            return None
        commit = self._store[ObjectID(self.sha.encode())]
        sha = commit.tree if isinstance(commit, Commit) else ZERO_SHA
        for name in folder.split("/") if folder else ():
            tree = self._store[sha]
            if not isinstance(tree, Tree) or name.encode() not in tree:
                return None
            mode, sha = tree[name.encode()]
            if not stat.S_ISDIR(mode):
                raise NotAFile(folder)
        found = self._store[sha]
        return found if isinstance(found, Tree) else None


@dataclass(frozen=True)
class Signed:
    """What a commit says of itself; `author` is `Name <address>`."""

    message: str
    author: str
    at: datetime


class Repository:
    """One remote repository; may be shared by threads, which take turns."""

    def __init__(self, remote: Remote) -> None:
        self.remote = remote
        self._lock = threading.Lock()
        self._memory, self._fetches = MemoryRepo(), 0

    def look(self, branch: str) -> Snapshot:
        """The newest state of a branch. Raises TemporaryError or PermanentError in words without credentials."""
        with self._lock, self._calling() as (client, path):
            return Snapshot(
                self._fetch(client, path, _ref(branch)), self._memory.object_store
            )

    def commit(
        self,
        base: Snapshot,
        changes: Mapping[str, bytes | None],
        signed: Signed,
        *,
        branch: str,
        onto: str | None = None,
    ) -> str:
        """Push one commit with these changes (None: the file goes) on top of `base`; returns its id.

        The branch must still be at `onto` (the base unless told otherwise; empty: not there), else Moved is raised and
        nothing changed.
        """
        expected = ObjectID((base.sha if onto is None else onto).encode() or ZERO_SHA)
        with self._lock, self._calling() as (client, path):
            # What was looked at keeps its objects, though a look in between may have begun a new memory.
            new = _Objects(base._store)
            sha = new.commit(base.sha, changes, signed)
            self._push(client, path, _ref(branch), expected, sha, new.added)
            return sha.decode()

    def remove(self, branch: str, *, at: str) -> None:
        """Delete a branch that is still at this commit, else Moved is raised and nothing changed."""
        with self._lock, self._calling() as (client, path):
            self._push(
                client,
                path,
                _ref(branch),
                ObjectID(at.encode()),
                ZERO_SHA,
                MemoryObjectStore(),
            )

    def _fetch(self, client: GitClient, path: str, ref: Ref) -> str:
        if self._fetches >= FETCHES_KEPT:
            self._memory, self._fetches = MemoryRepo(), 0
        found: list[ObjectID] = []

        def wants(
            refs: Mapping[Ref, ObjectID], depth: int | None = None
        ) -> list[ObjectID]:
            found.extend([refs[ref]] if ref in refs else [])
            return [sha for sha in found if sha not in self._memory.object_store]

        client.fetch(path, self._memory, determine_wants=wants, depth=1)
        self._fetches += 1
        if not found:
            return ""
        # Names what is here: the next fetch brings only what is new.
        self._memory.refs[ref] = found[0]
        return found[0].decode()

    def _push(
        self,
        client: GitClient,
        path: str,
        ref: Ref,
        expected: ObjectID,
        sha: ObjectID,
        new: MemoryObjectStore,
    ) -> None:
        def update(refs: Mapping[Ref, ObjectID]) -> dict[Ref, ObjectID]:
            # The server swaps what it told for what it is given: what it told must be what we looked at.
            if refs.get(ref, ZERO_SHA) != expected:
                raise Moved(self.remote.shown)
            return {ref: sha}

        def pack(*_: Any, **__: Any) -> Any:
            return pack_objects_to_data([(new[name], None) for name in new])

        result = client.send_pack(path.encode(), update, pack)
        told = result.ref_status or {}
        if words := told.get(ref):
            raise refusal(self.remote.shown, str(words))
        # A folder tells of refusals alone; a server tells of all that it was sent, and what it is silent about is not
        # there for certain.
        if (
            ref not in told
            and sha != expected
            and not isinstance(client, LocalGitClient)
        ):
            raise TemporaryError(
                f"{self.remote.shown} gave no answer that can be used."
            )

    @contextmanager
    def _calling(self) -> Iterator[tuple[GitClient, str]]:
        """A client for one exchange; whatever goes wrong inside comes out as one of our two errors."""
        place = self.remote.place()
        try:
            with within(DEADLINE_SECONDS):
                client = _client(self.remote, place)
                try:
                    yield client, place.path
                finally:
                    client.close()
        except Exception as error:
            raise said(self.remote.shown, error) from error


class _Objects:
    """The new objects of one commit, kept apart from what was fetched."""

    def __init__(self, known: BaseObjectStore) -> None:
        self.added = MemoryObjectStore()
        self._all = OverlayObjectStore([self.added, known], self.added)

    def commit(
        self, base: str, changes: Mapping[str, bytes | None], signed: Signed
    ) -> ObjectID:
        """Make blobs, trees and the commit; the same input gives the same id."""
        entries: list[tuple[bytes, int | None, ObjectID | None]] = []
        for path, content in sorted(changes.items()):
            if content is None:
                entries.append((path.encode(), None, None))
            else:
                blob = Blob.from_string(content)
                self.added.add_object(blob)
                entries.append((path.encode(), FILE, blob.id))
        made = Commit()
        made.tree = commit_tree_changes(self._all, self._base_tree(base), entries)
        made.parents = [ObjectID(base.encode())] if base else []
        made.author = made.committer = signed.author.encode()
        made.author_time = made.commit_time = int(signed.at.timestamp())
        made.author_timezone = made.commit_timezone = 0
        made.encoding, made.message = b"UTF-8", signed.message.encode()
        self.added.add_object(made)
        return made.id

    def _base_tree(self, base: str) -> ObjectID:
        if base:
            commit = self._all[ObjectID(base.encode())]
            if isinstance(commit, Commit):
                return ObjectID(commit.tree)
        empty = Tree()
        self.added.add_object(empty)
        return empty.id


class _OverSsh(SSHGitClient):
    """Ends every conversation that it began, also one that broke off at the first word."""

    def _connect(self, *args: Any, **kwargs: Any) -> Any:
        found = super()._connect(*args, **kwargs)
        at_end(found[0].close)
        return found


def _client(remote: Remote, place: Place) -> GitClient:
    if place.scheme == "local":
        return LocalGitClient()
    if place.scheme == "ssh":
        vendor = cast(SSHVendor, Ssh(remote.secret, remote.known_hosts, remote.allowed))
        return _OverSsh(place.host, place.port, place.user, vendor=vendor)
    user, _, password = remote.secret.rpartition(":")
    return Urllib3HttpGitClient(
        place.base,
        pool_manager=pool(allowed=remote.allowed, ca_file=remote.ca_file),
        username=(user or ANYBODY) if password else None,
        password=password or None,
    )


def _ref(branch: str) -> Ref:
    return Ref(f"refs/heads/{branch}".encode())


def refusal(shown: str, words: str) -> ConnectorError:
    """What a server said of a push that it did not take."""
    plain = UNSAID.sub(" ", words).strip()[:200]
    if any(sign in plain.casefold() for sign in BEHIND):
        return Moved(shown)
    return PermanentError(
        f"{shown} does not take the push: {plain}.", code="push_refused"
    )


def said(shown: str, error: Exception) -> ConnectorError:
    """One of our errors for whatever was raised while a repository was called."""
    if isinstance(error, ConnectorError):
        return error
    if isinstance(error, NotGitRepository):
        return PermanentError(
            f"There is no repository at {shown}, or the credentials do not open it.",
            code="no_repository",
        )
    if isinstance(error, HTTPUnauthorized):
        return PermanentError(
            f"{shown} does not accept the credentials.", code="unauthorized"
        )
    if isinstance(error, FileLocked):
        return TemporaryError(f"{shown} is locked by another writer.")
    if isinstance(error, PermissionError):
        return PermanentError(
            f"{shown} may not be written to by the portal.", code="forbidden"
        )
    if isinstance(error, GitProtocolError) and not isinstance(error, HangupException):
        return _of_protocol(shown, error)
    return TemporaryError(f"{shown} cannot be reached: {type(error).__name__}.")


def _of_protocol(shown: str, error: GitProtocolError) -> ConnectorError:
    status = STATUS.search(str(error))
    if status is None:
        cause = type(error.__cause__ or error).__name__
        return TemporaryError(f"{shown} gave no answer that can be used: {cause}.")
    number = status.group(1)
    if number in BUSY:
        return TemporaryError(f"{shown} answered {number}.")
    if number.startswith("3"):
        return PermanentError(
            f"{shown} sends on to another address, which is not followed.", code="moved"
        )
    code = "forbidden" if number == "403" else "bad_answer"
    return PermanentError(
        f"{shown} answered {number}: the credentials may not do this.", code=code
    )


def static_repository(files: Mapping[str, bytes], signed: Signed) -> dict[str, bytes]:
    """A repository with one commit of these files, as Git's "dumb" HTTP protocol reads it: contents by path.

    The same files, signed at the same moment, are the same repository. https://git-scm.com/docs/http-protocol
    """
    objects = _Objects(MemoryObjectStore())
    tip = objects.commit("", files, signed)
    found = {
        "HEAD": f"ref: {STATIC_REF}\n".encode(),
        "info/refs": b"%s\t%s\n" % (tip, STATIC_REF.encode()),
    }
    for sha in objects.added:
        name = sha.decode()
        found[f"objects/{name[:2]}/{name[2:]}"] = objects.added[sha].as_legacy_object()
    return found
