"""Names that people give: what is refused, in which words, and that each way in refuses the same."""

import pytest
from django.test import Client
from django.utils import timezone

from accounts.tokens.actions import create_token
from tests import factories
from tests.pages import parsed
from web.names import checked_name, refused_name
from web.refusals import BadInput

TURNED = "\u202egnp.exe"
WORDS = "A name is one line of characters that are seen; this one has "


@pytest.mark.parametrize(
    ("name", "words"),
    [
        (" Nightly training ", ""),
        ("<b>“Ünïcode” 夜间 🚀</b>", ""),
        ("x" * 60, ""),
        ("", "Give it a name."),
        ("  ", "Give it a name."),
        ("x" * 61, "A name has at most 60 characters; this one has 61."),
        (TURNED, f"{WORDS}right-to-left override."),
        ("a\u200bb", f"{WORDS}zero width space."),
        ("a\nb", f"{WORDS}a control character."),
        ("\u3164", f"{WORDS}hangul filler."),
        ("a\u2800b", f"{WORDS}braille pattern blank."),
        ("a\U000e0100", f"{WORDS}variation selector-17."),
        ("\u200da", f"{WORDS}zero width joiner."),
        ("a\u200d\u200db", f"{WORDS}zero width joiner."),
        ("Family \U0001f468\u200d\U0001f469\u200d\U0001f467", ""),
        ("\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645", ""),
        ("\ue000", f"{WORDS}a control character."),
    ],
)
def test_a_name_is_refused_for_what_nobody_sees_in_it(name: str, words: str) -> None:
    assert refused_name(name) == words
    if not words:
        assert checked_name(name, field="name") == name.strip()


@pytest.mark.django_db
def test_no_token_is_named_so() -> None:
    ada, now = factories.person("Ada"), timezone.now()
    with pytest.raises(BadInput, match="right-to-left override") as refused:
        create_token(user=ada, name=TURNED, scope="read", days=1, now=now)
    assert (refused.value.code, refused.value.field) == ("unreadable_name", "name")
    browser = Client()
    browser.force_login(ada)
    sent = {"name": TURNED, "scope": "read", "days": "1"}
    answer = browser.post("/tokens/", sent)
    assert (
        "this one has right-to-left override" in parsed(answer.content.decode()).words
    )
