"""A mail server and the webhooks of Teams and Slack on loopback, with one inbox to look at."""

from sandbox.notices.app import NoticesSandbox

__all__ = ["NoticesSandbox"]
