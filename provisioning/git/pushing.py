"""Getting changes into a repository: straight onto its branch, or by a pull request that people merge."""

from collections.abc import Callable
from dataclasses import dataclass

from connectors.errors import PermanentError
from connectors.git import Moved, Repository, Signed, Snapshot
from connectors.github import GitHub
from fleet.models import Cluster
from provisioning.git.commits import SHORT
from provisioning.git.pull_request_host import PullRequestHost
from provisioning.git.repository import Changes, PathRefused
from reconciling import failpoints

MOST_TRIES = 6
PREFIX = "quartermaster"
NOT_WANTED = "This is no longer wanted, or has come into the repository another way: Quartermaster closed it."
Wanted = Callable[[Snapshot], Changes]


@dataclass(frozen=True)
class Pushed:
    """The commit that holds what is wanted; `waits_for` says in words what has to happen before it counts."""

    sha: str
    wrote: bool
    pull: int | None = None
    waits_for: str = ""

    @property
    def short(self) -> str:
        """The commit's id as people read it."""
        return self.sha[:SHORT]


def push(
    repository: Repository,
    cluster: Cluster,
    wanted: Wanted,
    signed: Signed,
    *,
    renew: Callable[[], bool],
    branch: str,
) -> Pushed | None:
    """Have the repository hold what is wanted, with one commit at most; None, with nothing pushed, without the lease.

    `wanted` says what to change in what is there now; somebody who pushes at the same moment makes it say so again.
    `branch` names the branch of a pull request. Raises TemporaryError or PermanentError.
    """
    one_try = (
        _by_pull_request
        if cluster.git_way == Cluster.GitWay.PULL_REQUEST
        else _directly
    )
    for left in reversed(range(MOST_TRIES)):
        try:
            return one_try(
                repository, cluster, wanted, signed, renew, f"{PREFIX}/{branch}"
            )
        except Moved:
            if not left:
                raise
        except PathRefused as refused:
            raise PermanentError(str(refused), code="foreign") from refused
    return None


def _directly(
    repository: Repository,
    cluster: Cluster,
    wanted: Wanted,
    signed: Signed,
    renew: Callable[[], bool],
    branch: str,
) -> Pushed | None:
    seen = repository.look(cluster.git_branch)
    changes = wanted(seen)
    if not changes:
        return Pushed(seen.sha, wrote=False)
    if not renew():
        return None
    failpoints.reach("git.push")
    return Pushed(
        repository.commit(seen, changes, signed, branch=cluster.git_branch), wrote=True
    )


def _by_pull_request(
    repository: Repository,
    cluster: Cluster,
    wanted: Wanted,
    signed: Signed,
    renew: Callable[[], bool],
    branch: str,
) -> Pushed | None:
    host = PullRequestHost(cluster, GitHub(repository.remote), signed.at)
    # Ours first: what is merged between the two looks, and its branch deleted, is then seen in the base.
    ours, wrote = repository.look(branch), False
    base = repository.look(cluster.git_branch)
    changes = wanted(base)
    if not changes and not ours.sha:
        # A host closes what is open when its branch goes.
        return Pushed(base.sha, wrote=False)
    if not changes:
        return _withdraw(repository, host, wanted, renew, branch, ours)
    if not base.sha:
        raise PermanentError(
            f"There is no branch {cluster.git_branch} that a pull request could go to.",
            code="no_branch",
        )
    sha = ours.sha
    if not _holds(ours, wanted, changes):
        if not renew():
            return None
        failpoints.reach("git.push")
        sha, wrote = (
            repository.commit(base, changes, signed, branch=branch, onto=ours.sha),
            True,
        )
    # Beside a commit of this moment, one that was just closed must not be taken for an open one.
    number = None if wrote else host.open_pull(branch)
    if number is None:
        with host.calling() as github:
            number = _pull(github, cluster, branch, sha, signed)
    return Pushed(
        sha,
        wrote,
        number,
        f"Committed {sha[:SHORT]}; pull request {number} waits to be merged.",
    )


def _withdraw(
    repository: Repository,
    host: PullRequestHost,
    wanted: Wanted,
    renew: Callable[[], bool],
    branch: str,
    ours: Snapshot,
) -> Pushed | None:
    """Leave nothing that could be merged, as the base holds what is wanted; merged all the same raises Moved."""
    if not renew():
        return None
    with host.calling() as github:
        for pull in github.waiting(head=branch):
            github.withdraw(pull, why=NOT_WANTED)
    # Last: while it is there, what failed above is done again.
    repository.remove(branch, at=ours.sha)
    base = repository.look(host.cluster.git_branch)
    if wanted(base):
        raise Moved(repository.remote.shown)
    return Pushed(base.sha, wrote=False)


def _holds(ours: Snapshot, wanted: Wanted, changes: Changes) -> bool:
    """Whether our branch changes the base as wanted, and holds nothing from before that is wanted no more."""
    try:
        held = bool(ours.sha) and all(
            ours.read(path) == content for path, content in changes.items()
        )
        return held and not wanted(ours)
    except ValueError:
        return False


def _pull(
    github: GitHub, cluster: Cluster, branch: str, sha: str, signed: Signed
) -> int:
    """The number of the open pull request; one that people closed is not opened again for the same commit."""
    newest = github.newest(head=branch, base=cluster.git_branch)
    if newest is not None and newest.state == "open":
        return newest.number
    if (
        newest is not None
        and newest.state == "closed"
        and newest.head == sha
        and not newest.is_withdrawn
    ):
        raise PermanentError(
            f"Pull request {newest.number} was closed without being merged. Open it again, or change what is wanted.",
            code="pull_request_closed",
        )
    title, _, body = signed.message.partition("\n\n")
    return github.open(
        head=branch, base=cluster.git_branch, title=title, body=body
    ).number
