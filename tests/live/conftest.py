"""A served cluster for the live test itself, which takes it for somebody's own."""

from tests.contract.conftest import admin, admin_config, raw, sandbox

__all__ = ["admin", "admin_config", "raw", "sandbox"]
