"""Calls to the host of pull requests, which answers so many an hour: one answer and one pause for all who would call.

Both are kept in the cache that all processes share. While it does not answer, everybody calls for themselves.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.core.cache import cache
from django.utils.crypto import salted_hmac

from connectors.errors import TemporaryError
from connectors.github import GitHub
from fleet.models import Cluster
from web.counters import breaker

# Less than after which a tenancy that waits is looked at again, so that each look is at a list of its own.
SHARED_SECONDS = 10
# GitHub's limits begin anew each hour; a host that asks for longer is asked again then.
LONGEST_PAUSE = timedelta(hours=1)


@dataclass(frozen=True)
class PullRequestHost:
    """The host of a cluster's pull requests, as one worker calls it at one moment."""

    cluster: Cluster
    github: GitHub
    now: datetime

    def open_pull(self, branch: str) -> int | None:
        """The number of the open pull request of a branch, as it was some seconds ago; None where none is listed.

        All clusters and tenancies of a repository share one list. Raises TemporaryError or PermanentError.
        """
        key = f"open-pulls-{self._digest(self.cluster.git_branch)}"
        kept = breaker.ask(lambda: cache.get(key), otherwise=None)
        if kept is None or not 0 <= self.now.timestamp() - kept["at"] < SHARED_SECONDS:
            with self.calling() as github:
                found = github.open_to(base=self.cluster.git_branch)
            numbers = {pull.branch: pull.number for pull in reversed(found)}
            kept = {"at": self.now.timestamp(), "numbers": numbers}
            stored = kept
            breaker.ask(
                lambda: cache.set(key, stored, timeout=SHARED_SECONDS), otherwise=None
            )
        number: int | None = kept["numbers"].get(branch)
        return number

    @contextmanager
    def calling(self) -> Iterator[GitHub]:
        """What calls the host, unless it asked whoever has the same credentials to wait; raises TemporaryError then."""
        key = f"git-host-pause-{self._digest()}"
        kept = breaker.ask(lambda: cache.get(key), otherwise=None)
        left = kept["until"] - self.now.timestamp() if kept else 0.0
        if left > 0:
            raise TemporaryError(kept["message"], retry_after=left)
        try:
            yield self.github
        except TemporaryError as error:
            seconds = min(error.retry_after or 0.0, LONGEST_PAUSE.total_seconds())
            if seconds:
                until = self.now.timestamp() + seconds
                pause = {"until": until, "message": error.message}
                breaker.ask(
                    lambda: cache.set(key, pause, timeout=seconds), otherwise=None
                )
            raise

    def _digest(self, *more: str) -> str:
        """The host, or with more a list of a repository, in a key of the cache; another token has another one.

        The key tells nobody the token, as it takes the portal's own secret to make it.
        """
        remote = self.github.remote
        whose = remote.url if more else remote.place().host
        told = "\n".join([whose, remote.secret, *more])
        return salted_hmac(__name__, told, algorithm="sha256").hexdigest()
