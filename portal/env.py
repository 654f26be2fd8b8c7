"""Every value the portal takes from its environment, typed and checked when it starts."""

from ipaddress import IPv4Network, IPv6Network
from pathlib import Path
from typing import Annotated, Any, Literal, Self
from urllib.parse import parse_qsl, unquote, urlsplit

from pydantic import Field, SecretStr, StringConstraints, model_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

# A server that is back is used at once: whoever gave up tries again when next asked, and whoever does not waits twice
# as long after each try, for up to five minutes.
POOL = {
    "min_size": 1,
    "max_size": 16,
    "timeout": 10,
    "reconnect_timeout": 5,
    "max_waiting": 200,
}
# How often a connection runs a statement before it has it prepared.
PREPARED_FROM = 5
# Plain only to this very machine: keys that came another way unencrypted would prove nothing.
BACKSTAGE = r"^(https://[^?#@\s]+|http://(127\.0\.0\.1|localhost)(:\d{1,5})?/?)?$"
PLUGIN = r"^[a-z0-9]+(-[a-z0-9]+)*$"
REGISTRY = (
    r"^(/subscriptions/[^/]+/resourceGroups/[^/]+/providers/Microsoft\.ContainerRegistry"
    r"/registries/[A-Za-z0-9]{5,50})?$"
)
# Hosts are compared with those of addresses, which are in small letters.
HostName = Annotated[str, StringConstraints(strip_whitespace=True, to_lower=True)]


class Environment(BaseSettings):
    """The `QM_*` variables; a secret may also come from a file of its name in `QM_SECRETS_DIR`."""

    # What is refused is not repeated: it may be a secret, and stands in whatever logs the start.
    model_config = SettingsConfigDict(
        env_prefix="QM_",
        extra="ignore",
        env_ignore_empty=True,
        hide_input_in_errors=True,
    )

    secret_key: SecretStr
    secret_key_fallbacks: list[SecretStr] = Field(default_factory=list)
    debug: bool = False
    demo: bool = False
    allowed_hosts: list[str] = Field(default_factory=lambda: ["127.0.0.1", "localhost"])
    public_url: str = "http://127.0.0.1:8000"
    trusted_proxies: list[IPv4Network | IPv6Network] = Field(default_factory=list)
    data_dir: Path = Path("var")
    fleet_file: Path | None = None
    kubeconfig_dir: Path = Path("/etc/quartermaster/kubeconfigs")
    hub_credentials_dir: Path = Path("/etc/quartermaster/hubs")
    hub_hosts_allowed: list[str] = Field(default_factory=list)
    git_credentials_dir: Path = Path("/etc/quartermaster/git")
    git_local_dir: Path | None = None
    git_hosts_allowed: list[str] = Field(default_factory=list)
    run_images: list[str] = Field(default_factory=list)
    git_author: str = Field(
        default="Quartermaster <quartermaster@localhost>",
        pattern=r"^[^<>[:cntrl:]]+ <[^<>\s]+>$",
    )

    database_url: SecretStr
    migrate_database_url: SecretStr | None = None
    broker_url: SecretStr
    cache_url: SecretStr

    entra_authority: str
    entra_tenant_id: str
    entra_client_id: str
    entra_client_secret: SecretStr
    entra_scopes: dict[str, Literal["read", "run", "ask", "write"]] = {
        "Requests.Read": "read",
        "Requests.Ask": "ask",
        "Requests.Decide": "write",
    }
    sign_in_origin: str = ""
    graph_url: str = "https://graph.microsoft.com/v1.0"
    ca_file: Path | None = None
    role_groups: dict[str, str] = Field(default_factory=dict)

    backstage_url: str = Field(default="", pattern=BACKSTAGE)
    backstage_catalog_token: SecretStr = SecretStr("")
    backstage_plugins: list[Annotated[str, Field(pattern=PLUGIN)]] = [
        "scaffolder",
        "mcp-actions",
    ]
    backstage_scope: Literal["read", "ask"] = "ask"
    backstage_notices_token: SecretStr = SecretStr("")

    azure_subscription_id: str = ""
    azure_resource_group: str = ""
    azure_registry: str = Field(default="", pattern=REGISTRY)
    azure_tenant_id: str = ""
    azure_credential: Literal[
        "workload_identity", "managed_identity", "client_secret"
    ] = "workload_identity"
    azure_client_id: str = ""
    azure_client_secret: SecretStr = SecretStr("")
    azure_token_file: Path = Path("/var/run/secrets/azure/tokens/azure-identity-token")
    azure_arm_url: str = Field(
        default="https://management.azure.com", pattern=r"^https://[^/?#@]+$"
    )
    azure_authority: str = Field(
        default="https://login.microsoftonline.com", pattern=r"^https://[^/?#@]+$"
    )
    azure_prices_url: str = Field(
        default="https://prices.azure.com", pattern=r"^https://[^/?#@]+$"
    )

    mail_host: str = ""
    mail_port: int = Field(default=587, ge=1, le=65535)
    mail_username: str = ""
    mail_password: SecretStr = SecretStr("")
    mail_from: str = "Quartermaster <quartermaster@localhost>"
    mail_tls: Literal["starttls", "tls", "none"] = "starttls"
    webhook_hosts_allowed: list[HostName] = Field(default_factory=list)
    webhook_receivers: list[HostName] = Field(default_factory=list)
    anchor_mail: list[str] = Field(default_factory=list)
    anchor_dir: Path | None = None

    # A token that people can remember is one that can be guessed.
    metrics_token: SecretStr | None = Field(default=None, min_length=32)

    request_seconds: float = Field(default=20, gt=0, le=600)
    session_hours: int = Field(default=8, ge=1, le=24 * 7)
    session_limit_hours: int = Field(default=24, ge=1, le=24 * 30)
    monthly_budget_usd: int = 12_000
    retention_days: int = Field(default=30, ge=1, le=365)
    logs_kept_days: int = Field(default=30, ge=0, le=365)
    sign_in_rate: str = "30/min"
    write_rate: str = "120/min"
    read_rate: str = "1200/min"
    export_rate: str = "6/min"

    @model_validator(mode="after")
    def _mail_passwords_travel_encrypted(self) -> Self:
        if self.mail_password.get_secret_value() and self.mail_tls == "none":
            raise ValueError(
                "QM_MAIL_PASSWORD is sent over TLS only: QM_MAIL_TLS must be starttls or tls."
            )
        return self

    @model_validator(mode="after")
    def _backstage_is_whole_or_off(self) -> Self:
        if self.backstage_url and not self.backstage_catalog_token.get_secret_value():
            raise ValueError(
                "QM_BACKSTAGE_URL is set: QM_BACKSTAGE_CATALOG_TOKEN must be, too."
            )
        if self.backstage_notices_token.get_secret_value() and not self.backstage_url:
            raise ValueError(
                "QM_BACKSTAGE_NOTICES_TOKEN is set: QM_BACKSTAGE_URL must be, too."
            )
        return self

    @model_validator(mode="after")
    def _azure_is_whole_or_off(self) -> Self:
        if self.azure_registry and not self.azure_subscription_id:
            raise ValueError(
                "QM_AZURE_REGISTRY is set: QM_AZURE_SUBSCRIPTION_ID must be, too."
            )
        if self.azure_subscription_id:
            needed = {"QM_AZURE_RESOURCE_GROUP": self.azure_resource_group}
            if self.azure_credential != "managed_identity":
                needed["QM_AZURE_CLIENT_ID"] = self.azure_client_id
            if self.azure_credential == "client_secret":
                needed["QM_AZURE_CLIENT_SECRET"] = (
                    self.azure_client_secret.get_secret_value()
                )
            if absent := [name for name, value in needed.items() if not value]:
                raise ValueError(
                    f"QM_AZURE_SUBSCRIPTION_ID is set: {' and '.join(absent)} must be, too."
                )
        return self


def read(secrets_dir: str | None) -> Environment:
    """Read and check the environment; raises pydantic's ValidationError naming every missing variable."""
    return Environment(_secrets_dir=secrets_dir)  # type: ignore[call-arg]


def origin(url: str) -> str:
    """Scheme, host and port of an address."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"


def database(url: str) -> dict[str, Any]:
    """Django's DATABASES entry for a `postgresql://` or `sqlite:///` address."""
    parts = urlsplit(url)
    if parts.scheme == "sqlite":
        return {
            "ENGINE": "django.db.backends.sqlite3",
            "NAME": unquote(parts.path),
            "OPTIONS": {
                # A write lock taken at BEGIN cannot fail half-way through a transaction that has already read.
                "transaction_mode": "IMMEDIATE",
                "timeout": 20,
                "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; PRAGMA foreign_keys=ON;",
            },
        }
    if parts.scheme not in ("postgres", "postgresql"):
        raise ValueError(
            f"QM_DATABASE_URL must start with postgresql:// or sqlite:///, not {parts.scheme}://."
        )
    options = dict(parse_qsl(parts.query))
    return {
        "ENGINE": "portal.postgres",
        "NAME": unquote(parts.path.lstrip("/")),
        "USER": unquote(parts.username or ""),
        "PASSWORD": unquote(parts.password or ""),
        "HOST": options.pop("host", parts.hostname or ""),
        "PORT": str(parts.port or ""),
        "OPTIONS": {
            "pool": dict(POOL),
            "connect_timeout": 5,
            "tcp_user_timeout": 10_000,
            # PostgreSQL plans a statement of eight tables for longer than it reads for it: from the sixth time on, a
            # connection has it prepared. PgBouncer has to be 1.22 or newer, with max_prepared_statements above 0.
            "server_side_binding": True,
            "prepare_threshold": PREPARED_FROM,
            # Nobody waits for a row for longer than a person waits for a page.
            "options": "-c lock_timeout=5000 -c statement_timeout=30000 -c idle_in_transaction_session_timeout=60000",
            **options,
        },
    }


def cache(url: str) -> dict[str, Any]:
    """Django's CACHES entry for a `redis://` or `file:///` address: shared by every process either way."""
    parts = urlsplit(url)
    if parts.scheme == "file":
        return {
            "BACKEND": "portal.http.caching.JsonFileCache",
            "LOCATION": unquote(parts.path),
        }
    return {
        "BACKEND": "portal.http.caching.SharedRedisCache",
        "LOCATION": url,
        "OPTIONS": {
            # Django's own would unpickle whatever lies in Redis, which runs it.
            "serializer": "portal.http.caching.JsonSerializer",
            "socket_timeout": 1,
            "socket_connect_timeout": 1,
        },
    }


def broker(url: str) -> dict[str, Any]:
    """Celery's broker settings for `redis://` or `filesystem:///DIR`."""
    parts = urlsplit(url)
    if parts.scheme == "filesystem":
        folder = Path(unquote(parts.path))
        folder.mkdir(parents=True, exist_ok=True)
        return {
            "broker_url": "folder://",  # portal/folder_broker.py
            "broker_transport_options": {
                "data_folder_in": str(folder),
                "data_folder_out": str(folder),
                "control_folder": str(folder / "control"),
                "store_processed": False,
                "polling_interval": 0.05,
            },
        }
    return {
        "broker_url": url,
        "broker_transport_options": {
            # Without these a dead worker's task waits for 100 s and more, and a frozen broker for ever.
            "visibility_timeout": 120,
            "unacked_restore_throttle": 1,
            "unacked_restore_interval": 2,
            "socket_timeout": 3,
            "socket_connect_timeout": 1,
        },
    }
