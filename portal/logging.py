"""JSON log lines with the request's, task's and tenancy's ids bound once."""

import logging
import logging.config
from typing import Any

import structlog

QUIET = {
    "django.request": {"level": "ERROR"},
    "django.security.DisallowedHost": {"level": "CRITICAL"},
    "urllib3": {"level": "WARNING"},
    "kombu": {"level": "ERROR"},
}


def configure(options: dict[str, Any]) -> None:
    """Route every logger through structlog to one JSON line per event on standard error."""
    shared: list[Any] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_logger_name,
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.format_exc_info,
    ]
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            *shared,
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=True,
    )
    logging.config.dictConfig(
        {
            "version": 1,
            "disable_existing_loggers": False,
            "formatters": {
                "json": {
                    "()": structlog.stdlib.ProcessorFormatter,
                    "foreign_pre_chain": shared,
                    "processor": structlog.processors.JSONRenderer(),
                }
            },
            "handlers": {
                "stderr": {"class": "logging.StreamHandler", "formatter": "json"}
            },
            "root": {"handlers": ["stderr"], "level": options.get("level", "INFO")},
            "loggers": QUIET,
        }
    )
