"""Whatever people wrote has its own direction of writing, on every page: Hebrew and Arabic are not set as English."""

from collections.abc import Iterator

import pytest
from django.utils import timezone

from accounts.models import ApiToken, Team, User
from approvals.conversation.models import Comment
from approvals.models import Request
from fleet.models import Cluster
from manual.models import Task
from notices.models import Channel
from offboarding.models import Departure
from policy.models import PolicyDraft
from provisioning.models import Drift
from tests.pages import Element
from tests.portal.permission_matrix import Prober
from tests.portal.walk import pages
from tests.world import world

pytestmark = [pytest.mark.django_db, pytest.mark.slow]
# A title of a window and a choice of a list are drawn by the browser, which looks at the letters itself.
DRAWN_BY_THE_BROWSER = frozenset({"title", "option", "script", "code", "pre"})
TEXT_FIELDS = frozenset({"text", "search", ""})


@pytest.fixture
def prober() -> Prober:
    """A world in which everybody writes from right to left."""
    made = Prober(world())
    for model, field, words in (
        (Team, "name", "חזון"),
        (User, "name", "עדה"),
        (Cluster, "title", "אימון"),
        (Request, "reason", "צריך לאמן."),
        (PolicyDraft, "why", "מהר יותר."),
        (Departure, "reason", "נגמר."),
        (Channel, "name", "פלטפורמה"),
        (ApiToken, "name", "לילה"),
        (Drift, "who", "מישהו"),
        (Task, "note", "יש."),
    ):
        for row in model.objects.values_list("pk", flat=True):
            model.objects.filter(pk=row).update(
                **{field: words + str(row) if field == "name" else words}
            )
    for side in (made.here.own, made.here.other):
        Comment.objects.create(
            request=side.waiting, by=side.asker, text="למה?", at=timezone.now()
        )
    return made


def is_from_right_to_left(text: str) -> bool:
    return any("\u0590" <= letter <= "\u07ff" for letter in text)


def undirected(page: Element) -> Iterator[str]:
    """Elements with Hebrew in them whose direction nobody leaves to the text."""
    for element in page.walk():
        if element.tag in DRAWN_BY_THE_BROWSER or not is_from_right_to_left(
            " ".join(element.texts)
        ):
            continue
        said = next(
            (each.attrs["dir"] for each in element.around() if "dir" in each.attrs), ""
        )
        if said != "auto" and element.tag != "bdi":
            classes = ".".join(sorted(element.classes))
            yield f"<{element.tag} {classes}> {element.words[:60]}"


def fields(page: Element) -> Iterator[str]:
    """Fields for text that set what is typed as English."""
    for element in page.walk():
        typed = element.tag == "textarea" or (
            element.tag == "input" and element.attrs.get("type", "") in TEXT_FIELDS
        )
        if typed and element.attrs.get("name") and element.attrs.get("dir") != "auto":
            yield f"<{element.tag} name={element.attrs['name']}>"


@pytest.mark.timeout(300)
@pytest.mark.parametrize("role", ["member", "platform_lead"])
def test_what_people_wrote_has_its_own_direction(prober: Prober, role: str) -> None:
    wrong, written = [], 0
    for path, page in pages(prober, role):
        written += sum(
            is_from_right_to_left(" ".join(each.texts)) for each in page.walk()
        )
        wrong += [f"{path}: {each}" for each in [*undirected(page), *fields(page)]]
    assert not wrong, "\n".join(dict.fromkeys(wrong))
    assert written > 100
