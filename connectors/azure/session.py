"""One subscription of Azure, called as one identity: tokens, errors, and long operations that survive their worker.

Every call waits at most 3 s for a connection and 10 s for an answer, is sent three times at most within a few seconds
when Azure just failed, and raises TemporaryError (with `retry_after` in seconds where Azure asks for a wait) or
PermanentError, whose codes are the values in `failures`, and besides: `credentials` (no token), `bad_name`,
`foreign_link` (an answer names another server), `bad_token` (of an operation).
"""

import os
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from connectors.errors import AnswerLost, PermanentError, TemporaryError

if TYPE_CHECKING:
    from connectors.azure.pipeline import Calls, Look

T = TypeVar("T")
CredentialKind = Literal["workload_identity", "managed_identity", "client_secret"]
ARM_URL = "https://management.azure.com"
AUTHORITY = "https://login.microsoftonline.com"
TOKEN_FILE = Path("/var/run/secrets/azure/tokens/azure-identity-token")


@dataclass(frozen=True)
class AzureSettings:
    """Which subscription, and as whom: by the pod's own token, by the machine's identity, or by a client secret."""

    subscription_id: str
    tenant_id: str
    client_id: str = ""
    credential: CredentialKind = "workload_identity"
    client_secret: str = field(default="", repr=False)
    token_file: Path = TOKEN_FILE
    arm_url: str = ARM_URL
    authority: str = AUTHORITY
    ca_file: str | None = None


@dataclass(frozen=True)
class Operation:
    """A long operation of Azure: `token` is to be stored, and any process goes on with it; over when `is_done`.

    The token is about 2 kB, holds addresses and no secret, and is of no use to anybody else.
    """

    is_done: bool
    token: str = field(default="", repr=False)
    retry_after: float | None = None


DONE = Operation(is_done=True)


class AzureSession:
    """One identity in one subscription; may be shared by threads, and survives fork()."""

    def __init__(self, settings: AzureSettings) -> None:
        self.settings = settings
        self._lock = threading.Lock()
        self._made: dict[int, Calls] = {}

    @property
    def subscription_id(self) -> str:
        """The subscription that is called."""
        return self.settings.subscription_id

    def client(self, kind: Callable[..., Any]) -> Any:
        """A client of Microsoft's for this subscription, made once in a process."""
        return self._calls.client(kind, self.settings.subscription_id)

    def call(self, work: Callable[[], T]) -> T:
        """Do some calls and return what they give; a token that Azure refuses is renewed once."""
        from connectors.azure.pipeline import telling

        arm_url = self.settings.arm_url
        try:
            with telling(arm_url):
                return work()
        except PermanentError as error:
            if error.code != "unauthorized":
                raise
        self._calls.credential.renew()
        with telling(arm_url):
            return work()

    def read(self, work: Callable[[], T]) -> T | None:
        """The same for one resource, None where it is not there; raises PermanentError where its group is not."""
        try:
            return self.call(work)
        except PermanentError as error:
            if error.code in ("not_found", "no_parent"):
                return None
            raise

    def begin(self, start: Callable[..., object]) -> Operation:
        """Begin a long operation: `start` takes `polling`, as Microsoft's `begin_…` do. Nobody waits for it here."""
        return self.begun(start)[0]

    def begun(self, start: Callable[..., object]) -> tuple[Operation, str]:
        """The same, and where the first answer said that the outcome will be."""
        from connectors.azure.pipeline import Look

        def begin() -> "Look":
            look = Look()
            start(polling=look)
            return look

        look = self.call(begin)
        look.check()
        if look.is_over:
            return DONE, look.location
        return Operation(
            False, look.get_continuation_token(), look.retry_after
        ), look.location

    def poll(self, token: str) -> Operation:
        """Ask once how far an operation is, in whichever process; raises PermanentError when it has failed.

        PermanentError(code="not_found") when Azure has forgotten it: what it was about says then what became of it.
        """

        def look() -> "Look":
            try:
                look = self._calls.resume(token)
            except (ValueError, KeyError, TypeError) as error:
                raise PermanentError(
                    "This is no token of an operation.", code="bad_token"
                ) from error
            if not look.is_over:
                look.look()
            return look

        looked = self.call(look)
        looked.check()
        return DONE if looked.is_over else Operation(False, token, looked.retry_after)

    def get(self, path: str, version: str) -> Mapping[str, Any]:
        """The JSON object at a path, for what no client of Microsoft's asks."""
        found = self.call(lambda: self._calls.get(path, version))
        if not isinstance(found, dict):
            raise AnswerLost("Azure gave an answer of an unknown shape.")
        return found

    def close(self) -> None:
        """Close this process's connections."""
        with self._lock:
            made = self._made.pop(os.getpid(), None)
        if made is not None:
            made.close()

    @property
    def _calls(self) -> "Calls":
        with self._lock:
            if os.getpid() not in self._made:
                # A child of fork() shares no connection with its parent.
                self._made = {os.getpid(): self._make()}
            return self._made[os.getpid()]

    def _make(self) -> "Calls":
        from connectors.azure import pipeline

        given = self.settings
        match given.credential:
            case "client_secret":
                make = pipeline.secret_credential(
                    given.tenant_id,
                    given.client_id,
                    given.client_secret,
                    given.authority,
                )
            case "workload_identity":
                make = pipeline.workload_credential(
                    given.tenant_id, given.client_id, given.token_file, given.authority
                )
            case _:
                make = pipeline.managed_credential(given.client_id)
        return pipeline.Calls(
            arm_url=given.arm_url, ca_file=given.ca_file, make_credential=make
        )


def word(told: Any) -> str:
    """The text of what may be one of the SDK's enumerations, which are no texts to `str`; empty for None."""
    return "" if told is None else str(getattr(told, "value", told))


def shaped(read: Callable[[Any], T], told: Any) -> T:
    """What is read from an answer; raises TemporaryError for one of a shape that nobody knows."""
    try:
        return read(told)
    except (AttributeError, KeyError, TypeError, ValueError, ArithmeticError) as error:
        raise TemporaryError("Azure gave an answer of an unknown shape.") from error
