"""An application that two teams name at the same moment: it acts for one of them."""

from functools import partial

import pytest
from django.utils import timezone

from accounts.identities.actions import add_identity
from accounts.models import Identity, Team
from sandbox.entra.pipelines import PIPELINE
from tests import factories
from tests.concurrency.together import held_up
from web.refusals import Conflict


@pytest.mark.django_db(transaction=True)
def test_of_two_teams_that_name_an_application_at_once_one_is_refused() -> None:
    def naming(team: Team) -> "partial[Identity]":
        lead = factories.person()
        factories.join(team, lead, lead=True)
        return partial(
            add_identity,
            team=team,
            name="ci",
            client_id=PIPELINE.client_id,
            object_id=PIPELINE.principal_id,
            scope="run",
            by=lead,
            now=timezone.now(),
        )

    vision, speech = factories.team("Vision"), factories.team("Speech")
    with pytest.raises(Conflict, match="Ask a platform lead"):
        held_up(naming(vision), by=naming(speech))
    assert Identity.objects.live().count() == 1
