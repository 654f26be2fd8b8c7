"""What the policy alone gave lately, as the windows count it."""

from datetime import datetime

from django.db.models import Q

from accounts.models import User
from approvals.judging.inputs import Given, grants


def given_lately(person: User, *, since: datetime) -> Given:
    """To this person's asks since a moment."""
    return Given.of(grants(Q(request__requester=person), since=since))
