"""The only settings: safe by default, every value from the environment (see portal/env.py)."""

import os
from pathlib import Path

from notices.channels.events import WebhookEvent
from portal import env
from portal.celery_schedule import SCHEDULE

BASE_DIR = Path(__file__).resolve().parent.parent
ENV = env.read(os.environ.get("QM_SECRETS_DIR") or None)

SECRET_KEY = ENV.secret_key.get_secret_value()
SECRET_KEY_FALLBACKS = [key.get_secret_value() for key in ENV.secret_key_fallbacks]
DEBUG = ENV.debug
DEMO = ENV.demo
ALLOWED_HOSTS = ENV.allowed_hosts
PUBLIC_URL = ENV.public_url.rstrip("/")
HTTPS = PUBLIC_URL.startswith("https://")
CSRF_TRUSTED_ORIGINS = [PUBLIC_URL]

INSTALLED_APPS = [
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "whitenoise.runserver_nostatic",
    "django.contrib.staticfiles",
    "django.forms",
    "csp",
    "django_htmx",
    "rest_framework",
    "django_filters",
    "drf_spectacular",
    "drf_spectacular_sidecar",
    "audit",
    "accounts",
    "notices",
    "fleet",
    "provisioning",
    "allocations",
    "manual",
    "notebooks",
    "capacity",
    "policy",
    "catalogue",
    "approvals",
    "onboarding",
    "offboarding",
    "workloads",
    "portal",
]

MIDDLEWARE = [
    "portal.http.middleware.RequestIdMiddleware",
    "portal.http.probes.ProbeMiddleware",
    "portal.http.bodies.KnownLengthMiddleware",
    "portal.http.middleware.LookAgainMiddleware",
    "django.middleware.security.SecurityMiddleware",
    "portal.http.static.StaticFilesMiddleware",
    # Behind static files, which say themselves how long they stay.
    "portal.http.middleware.NoStoreMiddleware",
    "csp.middleware.CSPMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    "portal.http.middleware.StorableMiddleware",
    "portal.http.middleware.SignInRequiredMiddleware",
    "portal.http.middleware.RefusalMiddleware",
    "web.throttling.PageRateMiddleware",
    "portal.http.wrong_method.WrongMethodMiddleware",
]

ROOT_URLCONF = "portal.urls"
ASGI_APPLICATION = "portal.asgi.application"
WSGI_APPLICATION = "portal.wsgi.application"

# Fields are drawn by the project's templates where it has some: a list of 200 teams is drawn in one go.
FORM_RENDERER = "django.forms.renderers.TemplatesSetting"
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": False,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.messages.context_processors.messages",
                "portal.context.frame",
            ],
            "loaders": [
                (
                    "django.template.loaders.cached.Loader",
                    [
                        "django.template.loaders.filesystem.Loader",
                        "django.template.loaders.app_directories.Loader",
                    ],
                )
            ],
            "libraries": {
                "parts": "portal.templatetags.parts",
                "prices": "insights.prices.tags",
            },
            "builtins": ["portal.templatetags.parts", "portal.templatetags.words"],
        },
    }
]

DATABASES = {"default": env.database(ENV.database_url.get_secret_value())}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
CACHES = {"default": env.cache(ENV.cache_url.get_secret_value())}

AUTH_USER_MODEL = "accounts.User"
AUTHENTICATION_BACKENDS = ["accounts.backends.EntraBackend"]
LOGIN_URL = "sign-in"
LOGIN_REDIRECT_URL = "home"

SESSION_ENGINE = "django.contrib.sessions.backends.db"
SESSION_COOKIE_AGE = ENV.session_hours * 3600
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = HTTPS
SESSION_COOKIE_NAME = "qm_session"
CSRF_COOKIE_NAME = "qm_csrf"
CSRF_COOKIE_HTTPONLY = True
CSRF_FAILURE_VIEW = "portal.http.problems.csrf_failure"
SECURE_SSL_REDIRECT = HTTPS
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https") if HTTPS else None
SECURE_HSTS_SECONDS = 31_536_000 if HTTPS else 0
SECURE_HSTS_INCLUDE_SUBDOMAINS = SECURE_HSTS_PRELOAD = HTTPS
SECURE_CONTENT_TYPE_NOSNIFF = True
SECURE_REFERRER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"
DATA_UPLOAD_MAX_MEMORY_SIZE = 512 * 1024
DATA_UPLOAD_MAX_NUMBER_FIELDS = 200
MESSAGE_STORAGE = "django.contrib.messages.storage.session.SessionStorage"

CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": ["'none'"],
        "script-src": ["'self'"],
        "style-src": ["'self'"],
        "img-src": ["'self'", "data:"],
        "font-src": ["'self'"],
        "connect-src": ["'self'"],
        # A form's redirect is held against this too: signing in leads to Entra ID and back.
        "form-action": [
            "'self'",
            env.origin(ENV.entra_authority),
            *filter(None, [ENV.sign_in_origin]),
        ],
        "base-uri": ["'none'"],
        "frame-ancestors": ["'none'"],
    }
}

LANGUAGE_CODE = "en-us"
TIME_ZONE = "UTC"
USE_TZ = True
USE_I18N = False

STATIC_URL = "static/"
STATIC_ROOT = ENV.data_dir / "static"
STATICFILES_DIRS = [BASE_DIR / "static"]
STORAGES = {
    "staticfiles": {
        "BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"
        if DEBUG or DEMO
        else "whitenoise.storage.CompressedManifestStaticFilesStorage"
    }
}
WHITENOISE_USE_FINDERS = DEBUG or DEMO
WHITENOISE_AUTOREFRESH = DEBUG

REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": ["accounts.authentication.BearerAuthentication"],
    "DEFAULT_PERMISSION_CLASSES": [
        "accounts.authentication.SignedInWithScope",
        "web.filtering.KnownQuery",
    ],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_PARSER_CLASSES": ["web.parsing.BoundedJson"],
    "DEFAULT_CONTENT_NEGOTIATION_CLASS": "web.parsing.OnlyJson",
    "DEFAULT_METADATA_CLASS": None,
    "DEFAULT_PAGINATION_CLASS": "web.pagination.CursorPages",
    "DEFAULT_SCHEMA_CLASS": "portal.http.schema.ProblemAutoSchema",
    "DEFAULT_THROTTLE_CLASSES": ["web.throttling.ReadRate", "web.throttling.WriteRate"],
    "EXCEPTION_HANDLER": "portal.http.problems.problem_response",
    "UNAUTHENTICATED_USER": "django.contrib.auth.models.AnonymousUser",
    "COERCE_DECIMAL_TO_STRING": True,
}
SPECTACULAR_SETTINGS = {
    "TITLE": "Quartermaster",
    "DESCRIPTION": "Self-service GPUs: teams, requests, decisions, allocations and what became true.",
    "VERSION": "1.0.0",
    "OAS_VERSION": "3.1.0",
    "SERVE_INCLUDE_SCHEMA": False,
    "SCHEMA_PATH_PREFIX": "/api/v1",
    "SWAGGER_UI_DIST": "SIDECAR",
    "SWAGGER_UI_FAVICON_HREF": "SIDECAR",
    "REDOC_DIST": "SIDECAR",
    "COMPONENT_SPLIT_REQUEST": True,
    "SERVERS": [{"url": "/"}],
    "WEBHOOKS": [f"portal.http.webhooks.{event.name}" for event in WebhookEvent],
    "ENUM_NAME_OVERRIDES": {
        "FailedRunsCause": "insights.failed_runs.gathering.CHOICES",
        "ServiceLevelState": "workloads.service_levels.api.STATES",
        "ServiceTier": "workloads.service_levels.tiers.CHOICES",
        "TeamTier": "accounts.models.Team.Tier",
        "FailureCause": "workloads.failures.causes.CHOICES",
        "RequestState": "approvals.requests.serializers.STATES",
        "ObjectState": "provisioning.api.OBJECT_STATES",
        "Purpose": "approvals.models.Request.Purpose",
        "PolicyOutcome": "approvals.policy_desk.serializers.OUTCOMES",
        "ClusterPurpose": "fleet.models.Cluster.Purpose",
        "NoticeKind": "notices.models.CHOOSABLE_KINDS",
        "ChannelKind": "notices.models.CHANNEL_KINDS",
        "NoticePaceKind": "notices.models.PACES",
        "OfferingKey": "catalogue.offerings.CHOICES",
        "NoticeWay": "notices.models.WAYS",
        "ChannelWay": "notices.models.CHANNEL_WAYS",
        "WebhookEvent": "notices.models.WEBHOOK_EVENTS",
        "DeliveryState": "notices.models.Delivery.State",
        "DecisionVerdictEnum": "approvals.models.Decision.Verdict",
        "DepartureState": "offboarding.serializers.STATES",
        "RunState": "workloads.runs.serializers.STATES",
        "NotebookState": "workloads.notebook_pages.serializers.STATES",
        "NotebookStopReason": "workloads.notebook_pages.serializers.STOP_REASONS",
        "ModelEndpointState": "insights.model_endpoints.api.STATES",
        "ReservationState": "insights.reservations.api.STATES",
        "ProfileOutcome": "workloads.choosing.serializers.OUTCOMES",
        "TokenScope": "accounts.tokens.models.ApiToken.Scope",
        "TeamTokenScope": "accounts.tokens.models.TEAM_SCOPE_CHOICES",
        "ProfileState": "notebooks.profile_desk.serializers.STATES",
    },
}
RATES = {
    "read": ENV.read_rate,
    "write": ENV.write_rate,
    "sign-in": ENV.sign_in_rate,
    "export": ENV.export_rate,
}

CELERY = {
    **env.broker(ENV.broker_url.get_secret_value()),
    "task_ignore_result": True,
    "task_serializer": "json",
    "accept_content": ["json"],
    "task_acks_late": True,
    "task_reject_on_worker_lost": True,
    "task_soft_time_limit": 60,
    "task_time_limit": 90,
    "worker_prefetch_multiplier": 1,
    # What runs when a worker is told to end may still finish; a pass that takes longer is another worker's.
    "worker_soft_shutdown_timeout": 3,
    "worker_hijack_root_logger": False,
    "worker_send_task_events": False,
    "worker_enable_remote_control": False,
    "broker_connection_retry_on_startup": True,
    "task_publish_retry": False,
    "beat_schedule": SCHEDULE,
    "beat_schedule_filename": str(ENV.data_dir / "beat"),
    "timezone": "UTC",
}

LOGGING_CONFIG = "portal.logging.configure"
LOGGING = {"level": "DEBUG" if DEBUG else "INFO"}
SILENCED_SYSTEM_CHECKS: list[str] = []
