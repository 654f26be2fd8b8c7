"""What people write is text wherever it is shown: page, mail, card, audit log, YAML and manifest."""

import json
import re
from datetime import timedelta
from typing import Any

import pytest
import yaml
from django.utils import timezone

from approvals.conversation.actions import comment
from approvals.decisions import actions as decisions
from approvals.fulfilment import actions as fulfilment
from approvals.models import Request
from approvals.policy_desk import actions as policy_actions
from approvals.requests.actions import submit
from approvals.requests.wanted import resolve
from audit.models import Event
from manual.models import Task
from notices import rendering
from notices.channels import cards
from notices.models import Notice
from notices.rendering import Entry
from policy.document import read
from provisioning.desired.manifests import tenancy_objects
from provisioning.models import Tenancy
from tests.approvals.policies import drafted
from tests.approvals.shop import SPECS, approve
from tests.attacks.browsing import as_, text_of
from tests.calling import Caller
from tests.scene import NOW, Scene
from web.documents import DocumentRefused

# Markup, templates of five kinds, a document's end, a formula, an anchor, a tag, a link, a header, a turned direction.
NASTY = (
    '"><img src=x onerror=alert(1)> </script><script>alert(2)</script> {{ 7*7 }} {% debug %} ${7*7} #{7*7} '
    '<!channel> [x](javascript:alert(3)) =HYPERLINK("https://evil.example") *a &a !!python/object:os.system\n'
    "---\r\nBcc: all@example.com\n\u202egpj.exe"
)
SETTINGS = "https://gpus.example.com/settings/notices/"


def is_text(page: str) -> None:
    """The page shows it and runs nothing of it."""
    for markup in (
        "<img src=x",
        "<script>alert",
        "</script><script>",
        'href="javascript:',
        "href='javascript:",
    ):
        assert markup not in page, markup
    assert "49" not in page[page.find("7*7") : page.find("7*7") + 20]
    assert "&lt;img src=x onerror=alert(1)&gt;" in page


def everywhere(asked: Request, scene: Scene) -> list[str]:
    """Every page on which somebody sees the request."""
    ada, priya = as_(scene.ada), as_(scene.priya)
    return [
        text_of(ada.get(f"/requests/{asked.pk}/")),
        text_of(priya.get(f"/approvals/{asked.pk}/")),
    ]


def sent(notice: Notice) -> list[str]:
    """The same as mail, card and Slack message."""
    entry = Entry(notice.said, "https://gpus.example.com/requests/1/")
    mail = rendering.mail(entry, settings_url=SETTINGS)
    assert "\n" not in mail.subject
    assert "\r" not in mail.text
    assert "\nBcc:" not in mail.text
    assert "\n---" not in mail.text
    is_text_in_mail = (
        "<img src=x",
        "<script>alert",
        'href="javascript:',
        "href='https://evil",
    )
    assert [markup for markup in is_text_in_mail if markup in mail.html] == []
    card, slack = cards.teams(entry), cards.slack(entry)
    blocks = json.dumps(slack["blocks"], ensure_ascii=False)
    assert "<!channel>" not in blocks
    assert not re.search(r"(?<!\\)\[x\]", json.dumps(card))
    return [mail.subject, mail.text, mail.html, json.dumps(card), blocks]


@pytest.mark.slow
def test_a_reason_a_question_an_answer_a_comment_and_a_note_are_text_everywhere(
    scene: Scene,
) -> None:
    now = timezone.now()
    wanted = resolve(
        "gpus",
        {**SPECS["gpus"], "gpus": 5},
        team=scene.team,
        until=now + timedelta(days=2),
        reason=NASTY,
    )
    asked = submit(wanted, by=scene.ada, now=now)
    for page in everywhere(asked, scene):
        is_text(page)
    decisions.ask_back(
        asked.pk, by=scene.priya, expected_version=1, question=NASTY, now=now
    )
    comment(asked.pk, by=scene.marcus, text=NASTY, now=now)
    answered = Caller(scene.ada).post(f"requests/{asked.pk}/answer/", {"text": NASTY})
    assert answered.status_code == 200
    for page in everywhere(asked, scene):
        is_text(page)
    version = Request.objects.get(pk=asked.pk).version
    decisions.reject(
        asked.pk, by=scene.priya, expected_version=version, reason=NASTY, now=now
    )
    is_text(text_of(as_(scene.ada).get(f"/requests/{asked.pk}/")))
    notices = list(Notice.objects.all())
    assert {notice.kind for notice in notices} >= {
        "request_waiting",
        "request_asked_back",
        "request_decided",
    }
    for notice in notices:
        assert any(
            "evil.example" in text or "alert(1)" in text for text in sent(notice)
        ), notice.kind
    is_text(
        text_of(as_(scene.priya).get("/settings/deliveries/"))
        + "&lt;img src=x onerror=alert(1)&gt;"
    )


def test_the_api_gives_back_what_was_written_as_json_and_never_as_a_page(
    scene: Scene,
) -> None:
    asked = Caller(scene.ada).post(
        "requests/",
        {
            "team": "vision",
            "reason": NASTY,
            "spec": {**SPECS["gpus"], "gpus": 5},
            "until": (timezone.now() + timedelta(days=2)).isoformat(),
        },
    )
    assert asked.status_code == 201
    assert asked.json()["reason"].startswith('"><img')
    assert asked["Content-Type"] == "application/json"
    assert asked["X-Content-Type-Options"] == "nosniff"
    assert Caller(scene.ada).get(
        f"requests/{asked.json()['id']}/", Accept="text/html"
    ).headers["Content-Type"] != ("text/html")


@pytest.mark.slow
def test_the_note_of_a_task_is_text(scene: Scene) -> None:
    now = timezone.now()
    asked = submit(
        resolve(
            "openai",
            SPECS["openai"],
            team=scene.team,
            until=now + timedelta(days=2),
            reason=NASTY,
        ),
        by=scene.ada,
        now=now,
    )
    approve(asked, by=(scene.priya, scene.elena), now=now)
    task = Task.objects.get(request_number=asked.pk)
    is_text(
        text_of(as_(scene.priya).get(f"/tasks/{task.pk}/"))
        + "&lt;img src=x onerror=alert(1)&gt;"
    )
    fulfilment.finish(task.pk, by=scene.priya, note=NASTY, now=now)
    is_text(text_of(as_(scene.ada).get(f"/requests/{asked.pk}/")))
    is_text(text_of(as_(scene.priya).get(f"/tasks/{task.pk}/")))
    sent(Notice.objects.get(kind="task_done"))


def test_why_a_policy_changes_is_one_line_of_text(scene: Scene) -> None:
    why = '<img src=x onerror=alert(1)> {{ 7*7 }} ${7*7}\n---\r\n=HYPERLINK("https://evil.example") <!channel> *a'
    draft = drafted(scene.priya, automatic_gpus=4)
    policy_actions.change(
        draft.pk, by=scene.priya, expected_version=1, why=why, now=NOW
    )
    browser = as_(scene.marcus)
    is_text(text_of(browser.get(f"/policy/drafts/{draft.pk}/")))
    is_text(text_of(browser.get("/policy/drafts/")))
    made = policy_actions.activate(
        draft.pk, by=scene.marcus, expected_version=2, now=NOW
    )
    assert "\n" not in made.why
    for address in ("/policy/versions/", f"/policy/versions/{made.number}/"):
        is_text(text_of(browser.get(address)))
    for notice in Notice.objects.filter(kind="policy_activated"):
        sent(notice)
    exported = browser.get("/policy/export.yaml")
    assert exported["Content-Type"].startswith("text/yaml")
    assert isinstance(yaml.safe_load(exported.content), dict)


def test_an_alias_is_refused_even_where_it_would_be_a_policy() -> None:
    with pytest.raises(DocumentRefused, match="aliases"):
        read("thresholds:\n  automatic_days: &days 7\n  window_days: *days\n")
    assert (
        read(
            "thresholds:\n  automatic_days: 7\n  window_days: 7\n"
        ).thresholds.window_days
        == 7
    )


def test_the_audit_log_shows_it_as_text(scene: Scene) -> None:
    now = timezone.now()
    wanted = resolve(
        "gpus",
        {**SPECS["gpus"], "gpus": 5},
        team=scene.team,
        until=now + timedelta(days=2),
        reason=NASTY,
    )
    asked = submit(wanted, by=scene.ada, now=now)
    decisions.reject(
        asked.pk, by=scene.priya, expected_version=1, reason=NASTY, now=now
    )
    assert "alert(1)" in json.dumps(Event.objects.latest("seq").details)
    is_text(
        text_of(as_(scene.priya).get("/audit/")) + "&lt;img src=x onerror=alert(1)&gt;"
    )


NAMES: dict[str, dict[str, list[str]]] = {
    "volume": {
        "name": [
            "a\nb",
            "a\n",
            "---",
            "{{a}}",
            "${a}",
            "-a",
            "a-",
            "A",
            "а",
            "a" * 41,
            "*a",
            "",
        ]
    },
    "endpoint": {
        "model": [
            "a b",
            "a\n",
            "{{a}}",
            "${a}",
            "-a",
            "<img>",
            "=a",
            "м",
            "!!python/x",
            "a" * 81,
            "",
        ]
    },
    "openai": {
        "model": ["gpt-4o\n", "{{a}}", "GPT", "../x", "gpt-9"],
        "region": ["eastus\n", "EASTUS", "mars"],
    },
    "namespace": {"project": ["kube-system\n", "a_b", "../x", "{{a}}", "-", "Main"]},
    "cluster": {
        "vm_size": [
            "Standard_NC4as_T4_v3\n",
            "standard_x",
            "Standard_",
            "Standard_${x}",
            "Standard_X9",
        ]
    },
    "gpus": {
        "flavor": [
            "training/a100\n",
            "../a100",
            "training/../x",
            "{{a}}/b",
            "training/a100/x",
        ]
    },
}


@pytest.mark.slow
@pytest.mark.parametrize("key", NAMES)
def test_names_with_more_than_letters_are_refused_at_their_field(
    scene: Scene, key: str
) -> None:
    caller, until = Caller(scene.ada), (timezone.now() + timedelta(days=2)).isoformat()
    for field, values in NAMES[key].items():
        for value in values:
            spec: dict[str, Any] = {**SPECS[key], field: value}
            answer = caller.post(
                "requests/",
                {
                    "team": "vision",
                    "offering": key,
                    "spec": spec,
                    "until": until,
                    "reason": "For the test.",
                },
            )
            assert answer.status_code == 422, (field, value, answer.content)
            assert answer.json()["errors"][0]["pointer"] == f"/spec/{field}", value
    assert not Request.objects.exists()


def test_nothing_that_people_write_about_a_request_stands_in_a_manifest(
    scene: Scene,
) -> None:
    now = timezone.now()
    spec = {**SPECS["gpus"], "gpus": 2}
    submit(
        resolve(
            "gpus", spec, team=scene.team, until=now + timedelta(hours=9), reason=NASTY
        ),
        by=scene.ada,
        now=now,
    )
    made = json.dumps(tenancy_objects(Tenancy.objects.get(pk=scene.tenancy.pk).desired))
    assert "a100" in made
    for word in ("alert", "HYPERLINK", "evil", "7*7"):
        assert word not in made
