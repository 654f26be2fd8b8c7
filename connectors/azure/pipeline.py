"""How calls reach Azure: Microsoft's libraries for tokens, sending and long operations. Their only importer.

They are costly to import, so `session` does that when something is called. Bodies are never logged, and neither are
tokens.
"""

import logging
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from azure.core.exceptions import (
    AzureError,
    ClientAuthenticationError,
    DecodeError,
    HttpResponseError,
    SerializationError,
    ServiceRequestError,
    ServiceRequestTimeoutError,
    ServiceResponseError,
    ServiceResponseTimeoutError,
)
from azure.core.pipeline import Pipeline, PipelineRequest, PipelineResponse
from azure.core.pipeline.policies import (
    ContentDecodePolicy,
    HeadersPolicy,
    HTTPPolicy,
    RequestIdPolicy,
    RetryPolicy,
    SansIOHTTPPolicy,
    UserAgentPolicy,
)
from azure.core.pipeline.transport import RequestsTransport
from azure.core.rest import HttpRequest
from azure.identity import (
    ClientSecretCredential,
    ManagedIdentityCredential,
    WorkloadIdentityCredential,
)
from azure.mgmt.core import ARMPipelineClient
from azure.mgmt.core.policies import (
    ARMChallengeAuthenticationPolicy,
    ARMHttpLoggingPolicy,
)
from azure.mgmt.core.polling.arm_polling import ARMPolling

from connectors.azure.failures import SERVER_ERROR, TEMPORARY, failure
from connectors.errors import AnswerLost, ConnectorError, PermanentError, TemporaryError
from connectors.patience import seconds

CONNECT_SECONDS = 3.0
READ_SECONDS = 10.0
# Whoever is told to wait longer than this hears of it, instead of being kept waiting.
LONGEST_WAIT = 2.0
RETRIES = {"retry_total": 2, "retry_connect": 2, "retry_read": 1, "retry_status": 2}
PAUSES = {"retry_backoff_factor": 0.2, "retry_backoff_max": 1, "timeout": 15}
READING = frozenset({"GET", "HEAD"})
GOOD = frozenset({200, 201, 202, 204})
SUCCEEDED, FAILED = "succeeded", frozenset({"failed", "canceled"})
LONGEST_REASON = 300
# How MSAL tells of an answer that it did not read.
TOLD_STATUS = re.compile(r"HTTP Error: (\d{3})")
ENTRA_IS_BUSY = "AADSTS90033"
PUBLIC_SCOPE = "https://management.azure.com/.default"

# Each tells of every call at INFO; who wants that sets a level.
CHATTY = ("azure.core.pipeline.policies.http_logging_policy", "azure.identity")
for _name in CHATTY:
    if logging.getLogger(_name).level == logging.NOTSET:
        logging.getLogger(_name).setLevel(logging.WARNING)


class BriefRetry(RetryPolicy[Any, Any]):
    """Sends again what just failed, for a few seconds in all.

    Neither silence nor a long wait is its business, nor a change whose answer was lost: it may have been done.
    """

    def __init__(self, **_: Any) -> None:
        super().__init__(**RETRIES, **PAUSES)

    def is_retry(
        self, settings: dict[str, Any], response: PipelineResponse[Any, Any]
    ) -> bool:
        """Whether to send again at once, or after a wait that is short."""
        wait = self.get_retry_after(response)
        return super().is_retry(settings, response) and (
            wait is None or wait <= LONGEST_WAIT
        )

    def increment(
        self,
        settings: dict[str, Any],
        response: Any = None,
        error: Exception | None = None,
    ) -> bool:
        """Whether there is a try left."""
        is_silent = isinstance(
            error, ServiceRequestTimeoutError | ServiceResponseTimeoutError
        )
        is_sent = error is not None and not isinstance(error, ServiceRequestError)
        if is_silent or (is_sent and response.http_request.method not in READING):
            return False
        return super().increment(settings, response, error)

    def sleep(
        self, settings: dict[str, Any], transport: Any, response: Any = None
    ) -> None:
        """Wait, with the refused answer read, which where an operation begins nobody did: its connection is free."""
        answer: Any = getattr(response, "http_response", None)
        if hasattr(answer, "read"):
            answer.read()
        super().sleep(settings, transport, response=response)


class OwnHost(SansIOHTTPPolicy[Any, Any]):
    """Lets no call pass to a foreign host: answers name where to ask next, and whoever is asked gets our token."""

    def __init__(self, arm_url: str) -> None:
        self._arm_url = arm_url

    def on_request(self, request: PipelineRequest[Any]) -> None:
        """Raise PermanentError(code="foreign_link") for a foreign host."""
        if not _is_at(request.http_request.url, self._arm_url):
            raise PermanentError(
                "Azure named an address on another server.", code="foreign_link"
            )


class Credential:
    """The identity that calls; `renew` has it get a new token next time, whatever the old one says of its time."""

    def __init__(self, make: Callable[[], Any]) -> None:
        self._make = make
        self._made: Any = None

    def get_token(self, *scopes: str, **options: Any) -> Any:
        """Return a token, from memory while it is good."""
        if self._made is None:
            try:
                self._made = self._make()
            except ValueError as error:
                raise PermanentError(
                    f"No token for Azure: {error}", code="credentials"
                ) from error
        return self._made.get_token(*scopes, **options)

    def renew(self) -> None:
        """Forget every token."""
        self._made = None


class Look(ARMPolling):
    """A long operation that is looked at once, when asked: nobody waits for it in a thread."""

    def __init__(self) -> None:
        super().__init__(timeout=0)

    def finished(self) -> bool:
        """True: there is nothing to wait for."""
        return True

    @property
    def state(self) -> str:
        """How far it is: `succeeded`, `failed`, `canceled`, or whatever its provider says while it goes on."""
        return str(self._status).lower()

    @property
    def is_over(self) -> bool:
        return self.state == SUCCEEDED or self.state in FAILED

    @property
    def retry_after(self) -> float | None:
        """Seconds after which Azure wants to be asked again."""
        return seconds(self._pipeline_response.http_response.headers.get("Retry-After"))

    @property
    def location(self) -> str:
        """Where the first answer said that the outcome will be."""
        return str(self._initial_response.http_response.headers.get("Location") or "")

    def look(self) -> None:
        """Ask once how far it is."""
        self._pipeline_response = self.request_status(self._operation.get_polling_url())
        response = self._pipeline_response.http_response
        if response.status_code not in GOOD:
            raise HttpResponseError(response=response)
        self._status = self._operation.get_status(self._pipeline_response)

    def check(self) -> None:
        """Raise ConnectorError when it is over and has failed."""
        if self.state in FAILED:
            response: Any = self._pipeline_response.http_response
            raise failure(response.status_code, response.text())


class Calls:
    """What one process calls Azure with; every client of Microsoft's shares it."""

    def __init__(
        self,
        *,
        arm_url: str,
        ca_file: str | None,
        make_credential: Callable[[Any], Any],
    ) -> None:
        self.arm_url = arm_url.rstrip("/")
        self._transport = RequestsTransport(
            connection_timeout=CONNECT_SECONDS,
            read_timeout=READ_SECONDS,
            connection_verify=ca_file or True,
            # Neither a proxy nor a CA bundle of the environment.
            use_env_settings=False,
        )
        self.credential = Credential(lambda: make_credential(self._transport))
        host = urlsplit(self.arm_url).hostname or ""
        scope = (
            f"{self.arm_url}/.default"
            if host.startswith("management.")
            else PUBLIC_SCOPE
        )
        policies: list[HTTPPolicy[Any, Any] | SansIOHTTPPolicy[Any, Any]] = [
            RequestIdPolicy(),
            HeadersPolicy(),
            UserAgentPolicy(base_user_agent="Quartermaster"),
            ContentDecodePolicy(),
            OwnHost(self.arm_url),
            BriefRetry(),
            ARMChallengeAuthenticationPolicy(self.credential, scope),
            ARMHttpLoggingPolicy(),
        ]
        self.pipeline: Pipeline[Any, Any] = Pipeline(self._transport, policies)
        self.raw: ARMPipelineClient[Any, Any] = ARMPipelineClient(
            self.arm_url, pipeline=self.pipeline, policies=[]
        )
        self._clients: dict[Any, Any] = {}

    def client(self, kind: Callable[..., Any], subscription: str) -> Any:
        """A client of Microsoft's that calls through this."""
        if kind not in self._clients:
            self._clients[kind] = kind(
                self.credential,
                subscription,
                base_url=self.arm_url,
                pipeline=self.pipeline,
                policies=[],
            )
        return self._clients[kind]

    def get(self, path: str, version: str) -> Any:
        """The JSON of one resource, for what no client of Microsoft's asks."""
        request = HttpRequest(
            "GET", f"{self.arm_url}{path}", params={"api-version": version}
        )
        response = self.raw.send_request(request)
        if response.status_code not in GOOD:
            raise HttpResponseError(response=response)
        return response.json()

    def resume(self, token: str) -> Look:
        """The operation of a continuation token, as it was when it was begun."""
        look = Look()
        client, response, done = Look.from_continuation_token(
            token, client=self.raw, deserialization_callback=lambda _: None
        )
        look.initialize(client, response, done)
        return look

    def close(self) -> None:
        """Close every connection."""
        self._transport.close()


def secret_credential(
    tenant: str, client: str, secret: str, authority: str
) -> Callable[[Any], Any]:
    """An application with a client secret."""
    return lambda transport: ClientSecretCredential(
        tenant, client, secret, authority=authority, **_options(authority, transport)
    )


def workload_credential(
    tenant: str, client: str, file: Path, authority: str
) -> Callable[[Any], Any]:
    """A pod whose cluster gives it a token that Entra ID trusts."""

    def make(transport: Any) -> Any:
        if not file.is_file():
            message = "There is no file with a token of the cluster: is workload identity on for this pod?"
            raise PermanentError(message, code="credentials")
        return WorkloadIdentityCredential(
            tenant_id=tenant,
            client_id=client,
            token_file_path=str(file),
            authority=authority,
            **_options(authority, transport),
        )

    return make


def managed_credential(client: str) -> Callable[[Any], Any]:
    """The identity of the machine; with a client id, one of several that it has."""
    return lambda transport: ManagedIdentityCredential(
        client_id=client or None,
        transport=transport,
        retry_policy_class=BriefRetry,
        _exclude_workload_identity_credential=True,
    )


@contextmanager
def telling(arm_url: str) -> Iterator[None]:
    """Turn every way in which Microsoft's libraries fail into TemporaryError or PermanentError."""
    try:
        yield
    except ConnectorError:
        raise
    except HttpResponseError as error:
        raise _refusal(error, arm_url) from error
    except ServiceResponseError as error:
        raise AnswerLost(f"Azure's answer was lost: {_kind(error)}.") from error
    except AzureError as error:
        raise TemporaryError(f"Azure cannot be reached: {_kind(error)}.") from error
    except OSError as error:
        raise TemporaryError(f"Azure cannot be reached: {_kind(error)}.") from error
    except SerializationError as error:
        raise PermanentError(
            f"Azure takes no such value: {error}", code="invalid"
        ) from error
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        # Microsoft's libraries read answers without looking at their shape.
        raise AnswerLost("Azure gave an answer of an unknown shape.") from error


def _refusal(error: HttpResponseError, arm_url: str) -> ConnectorError:
    response: Any = error.response
    # The other one that answers is Entra ID.
    is_azures = response is not None and _is_at(response.request.url, arm_url)
    if isinstance(error, DecodeError):
        return AnswerLost("Azure's answer ended too early.")
    if not is_azures and isinstance(error, ClientAuthenticationError):
        return _no_token(error)
    if response is None:
        return TemporaryError(f"Azure's answer was lost: {_kind(error)}.")
    return failure(
        response.status_code, _text(response), response.headers.get("Retry-After")
    )


def _no_token(error: ClientAuthenticationError) -> ConnectorError:
    """Entra ID, or the machine, gives no token."""
    reason = " ".join(str(error.message).split())[:LONGEST_REASON]
    told = TOLD_STATUS.search(reason)
    status, cause = error.status_code or (int(told[1]) if told else 0), error.__cause__
    is_unreachable = isinstance(cause, AzureError | OSError) and not isinstance(
        cause, HttpResponseError
    )
    if (
        is_unreachable
        or status in TEMPORARY
        or status >= SERVER_ERROR
        or ENTRA_IS_BUSY in reason
    ):
        return TemporaryError(f"No token for Azure: {reason}")
    return PermanentError(f"No token for Azure: {reason}", code="credentials")


def _options(authority: str, transport: Any) -> dict[str, Any]:
    # Public authorities are known to Microsoft's library; of another one it would ask the public cloud.
    is_public = (urlsplit(authority).hostname or "").endswith(
        (".microsoftonline.com", ".microsoftonline.us")
    )
    return {
        "transport": transport,
        "retry_policy_class": BriefRetry,
        "disable_instance_discovery": not is_public,
    }


def _is_at(url: str, arm_url: str) -> bool:
    """Whether an address is Azure's own: that of a region is below it."""
    (host, port), (own, own_port) = _place(url), _place(arm_url)
    return port == own_port and (host == own or host.endswith(f".{own}"))


def _place(url: str) -> tuple[str, int]:
    parts = urlsplit(url)
    return (parts.hostname or "").lower(), parts.port or 443


def _text(response: Any) -> str:
    try:
        return str(response.text())
    except (AzureError, OSError, UnicodeError):
        return ""


def _kind(error: Exception) -> str:
    inner = getattr(error, "inner_exception", None) or error
    return type(inner).__name__
