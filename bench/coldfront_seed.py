"""ColdFront's rows in bulk, run by `coldfront shell`: as many as the portal gets, and one signed-in reviewer.

The last line it prints is the session with the numbers of the allocations, as JSON.
"""

import json
import os
from datetime import timedelta
from importlib import import_module

from coldfront.core.allocation.models import (
    Allocation,
    AllocationStatusChoice,
    AllocationUser,
    AllocationUserStatusChoice,
)
from coldfront.core.project.models import Project, ProjectStatusChoice
from coldfront.core.resource.models import Resource
from coldfront.core.user.models import UserProfile
from django.conf import settings
from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY
from django.contrib.auth.models import User
from django.utils import timezone

PEOPLE, PROJECTS = 2_000, 1_000
COUNT, WAITING = int(os.environ["SEED_REQUESTS"]), int(os.environ["SEED_WAITING"])

Allocation.objects.all().delete()
people = User.objects.bulk_create(
    User(username=f"seeded{n}", first_name="Person", last_name=str(n))
    for n in range(PEOPLE)
)
# bulk_create skips the signal that would make them.
UserProfile.objects.bulk_create(
    UserProfile(user=user, is_pi=n < PROJECTS) for n, user in enumerate(people)
)
active = ProjectStatusChoice.objects.get(name="Active")
projects = Project.objects.bulk_create(
    Project(
        pi=people[n],
        title=f"Project {n}",
        description="Detector training.",
        status=active,
    )
    for n in range(PROJECTS)
)
states = {each.name: each for each in AllocationStatusChoice.objects.all()}
today = timezone.now().date()
rows = Allocation.objects.bulk_create(
    Allocation(
        project=projects[n % PROJECTS],
        status=states[
            "New" if n >= COUNT - WAITING else "Active" if n % 5 else "Denied"
        ],
        start_date=today,
        end_date=today + timedelta(days=30),
        justification="Retrain the detector on the November data before the review.",
    )
    for n in range(COUNT)
)
resource = Resource.objects.order_by("pk").first()
through = Allocation.resources.through
through.objects.bulk_create(through(allocation=row, resource=resource) for row in rows)
member = AllocationUserStatusChoice.objects.get(name="Active")
AllocationUser.objects.bulk_create(
    AllocationUser(
        allocation=row, user=people[(n + k * PROJECTS) % PEOPLE], status=member
    )
    for n, row in enumerate(rows)
    for k in range(2)
)
reviewer = User.objects.create_superuser("reviewer", "reviewer@example.com")
session = import_module(settings.SESSION_ENGINE).SessionStore()
session[SESSION_KEY] = str(reviewer.pk)
session[BACKEND_SESSION_KEY] = settings.AUTHENTICATION_BACKENDS[0]
session[HASH_SESSION_KEY] = reviewer.get_session_auth_hash()
session.save()
made = {"name": settings.SESSION_COOKIE_NAME, "key": session.session_key}
print(json.dumps(made | {"allocations": [row.pk for row in rows]}))
