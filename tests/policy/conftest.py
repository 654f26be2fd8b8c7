"""A fleet, two teams and people of every role."""

from tests.approvals.conftest import scene

__all__ = ["scene"]
