"""The commands of `qm`, a module for each thing that they are about."""

from __future__ import annotations

from qm.commands import (
    access,
    allocations,
    asking,
    completion,
    logs,
    onboarding,
    places,
    requests,
    runs,
    submitting,
)
from qm.commands.group import qm

__all__ = ["qm"]

# In the order of the reference.
for command in (
    access.login,
    access.logout,
    onboarding.groups,
    onboarding.onboard,
    places.places,
    places.templates,
    submitting.train,
    runs.list_runs,
    runs.show,
    runs.why,
    runs.stop,
    runs.limit,
    submitting.again,
    logs.logs,
    runs.wait,
    asking.ask,
    requests.list_requests,
    requests.show_request,
    requests.answer,
    requests.comment,
    requests.withdraw,
    allocations.allocations,
    asking.renew,
    allocations.give_back,
    completion.completion,
):
    qm.add_command(command)
