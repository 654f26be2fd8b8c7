"""The portal's settings for tools that import the project and run nothing of it, such as mypy."""

from tests.services import environment

environment.fill()

from portal.settings import *  # noqa: E402, F403
