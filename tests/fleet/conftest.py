"""Somebody of a team on a cluster, and who looks after clusters."""

import pytest

from accounts.models import User
from accounts.roles import Role
from provisioning.models import Tenancy
from tests import factories


@pytest.fixture
def place() -> Tenancy:
    return factories.tenancy(factories.team("Vision"), factories.cluster("training"))


@pytest.fixture
def ada(place: Tenancy) -> User:
    return factories.person("Ada Okafor", teams=[place.team])


@pytest.fixture
def priya(db: None) -> User:
    return factories.person("Priya Raman", Role.PLATFORM_LEAD)
