"""The same sentences as mail, card and Slack message; what people write means nothing to any of them."""

import re
from datetime import date
from html.parser import HTMLParser
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from notices import rendering
from notices.channels import cards
from notices.message import Message, one_line
from notices.rendering import Entry
from sandbox.notices.cards import slack_title, teams_title

NASTY = '<img src=x onerror=alert(1)> & "quotes" <!channel> <@U1> *b* [x](https://evil.example)'
SAID = Message(
    "Vision asks for 16 A100",
    "Vision asks for 16 more A100 in training-eastus for 14 days.",
    facts=(("Cost", "$59,000"), ("Until", "Fri 4 Dec, 18:00")),
    rules=(
        ("note", "16 GPUs", "people decide above 2"),
        ("ok", "Budget left", "$8,100 of $12,000"),
        ("no", "x", ""),
    ),
    action="Decide",
)
CELLS, SOFT = r'<td style="([^"]*)">([^<]*)</td>', rendering.SOFT
ENTRY = Entry(SAID, "https://gpus.example.com/requests/17/")
SETTINGS = "https://gpus.example.com/settings/notices/"
MESSAGES = st.builds(
    Message,
    st.text(),
    st.text(max_size=3000),
    st.lists(st.tuples(st.text(), st.text()), max_size=20).map(tuple),
    st.lists(
        st.tuples(st.sampled_from(["ok", "no", "note", "?"]), st.text(), st.text()),
        max_size=30,
    ).map(tuple),
    st.text(),
).map(Message.tidy)


class Page(HTMLParser):
    """Which elements a document has, and where its links lead."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.links: list[str | None] = []
        self.text = ""
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        if tag == "a":
            self.links.append(dict(attrs)["href"])

    def handle_data(self, data: str) -> None:
        self.text += data


def mail(said: Message = SAID) -> rendering.Rendered:
    return rendering.mail(Entry(said, ENTRY.url), settings_url=SETTINGS)


def test_a_mail_reads_like_this() -> None:
    assert mail().text == (
        "Vision asks for 16 A100\n\n"
        "Vision asks for 16 more A100 in training-eastus for 14 days.\n\n"
        "Cost: $59,000\nUntil: Fri 4 Dec, 18:00\n\n"
        "Decide: https://gpus.example.com/requests/17/\n\n"
        "! 16 GPUs (people decide above 2)\n"
        "✓ Budget left ($8,100 of $12,000)\n"
        "✕ x\n\n"
        "-- \nQuartermaster. Choose what you are told: https://gpus.example.com/settings/notices/\n"
    )


def test_text_html_card_and_slack_say_the_same() -> None:
    rendered = mail()
    said = [
        SAID.title,
        SAID.sentence,
        "16 GPUs",
        "people decide above 2",
        "Cost",
        "$59,000",
        "Decide",
        ENTRY.url,
    ]
    for text in (
        rendered.text,
        rendered.html,
        str(cards.teams(ENTRY)),
        str(cards.slack(ENTRY)),
    ):
        assert [words for words in said if words not in text] == []


def test_the_one_button_leads_to_the_page_and_nothing_is_decided_by_a_link() -> None:
    assert Page(mail().html).links == [ENTRY.url, SETTINGS]
    card = cards.teams(ENTRY)["attachments"][0]["content"]
    assert card["actions"] == [
        {"type": "Action.OpenUrl", "title": "Decide", "url": ENTRY.url}
    ]
    (buttons,) = [
        block for block in cards.slack(ENTRY)["blocks"] if block["type"] == "actions"
    ]
    assert [(button["type"], button["url"]) for button in buttons["elements"]] == [
        ("button", ENTRY.url)
    ]


def test_html_of_people_is_text_in_a_mail() -> None:
    nasty = Message(NASTY, NASTY, ((NASTY, NASTY),), (("ok", NASTY, NASTY),), NASTY)
    page = Page(mail(nasty).html)
    assert "img" not in page.tags
    assert page.text.count(NASTY) >= 6
    assert page.links == [ENTRY.url, SETTINGS]


def test_a_mention_or_link_of_people_is_text_in_slack_and_teams() -> None:
    nasty = Message(NASTY, NASTY, ((NASTY, NASTY),), (("ok", NASTY, NASTY),), "Open")
    blocks = cards.slack(Entry(nasty, ENTRY.url))
    formatted = [text for text in _texts(blocks) if text.get("type") == "mrkdwn"]
    assert formatted
    for text in formatted:
        assert not re.search(r"[<>]", text["text"])
        assert not re.search(r"&(?!amp;|lt;|gt;)", text["text"])
        assert text["verbatim"] is True
    assert "<!channel>" not in blocks["text"]
    card = cards.teams(Entry(nasty, ENTRY.url))["attachments"][0]["content"]
    assert "\\[x](https://evil.example)" in card["body"][0]["text"]
    assert not re.search(r"(?<!\\)[\[*_]", card["body"][0]["text"])


def test_a_subject_has_no_line_break() -> None:
    said = Message("Hello\r\nBcc: all@example.com\u2028x", "s")
    assert mail(said).subject == "Hello Bcc: all@example.com x"


def test_a_card_too_large_for_teams_says_the_sentence_alone() -> None:
    said = Message(
        "t",
        "s",
        (("界" * 200, "界" * 200),) * 12,
        (("ok", "界" * 200, "界" * 200),) * 20,
    )
    card = cards.teams(Entry(said, ENTRY.url))
    assert [row["text"] for row in card["attachments"][0]["content"]["body"]] == [
        "t",
        "s",
    ]


def test_a_daily_mail_counts_its_notices() -> None:
    one = rendering.digest([ENTRY], day=date(2026, 11, 20), settings_url=SETTINGS)
    two = rendering.digest([ENTRY, ENTRY], day=date(2026, 11, 1), settings_url=SETTINGS)
    assert (one.subject, two.subject) == (
        "1 notice, Fri 20 Nov",
        "2 notices, Sun 1 Nov",
    )
    assert two.text.count(ENTRY.url) == 2
    assert Page(two.html).links == [ENTRY.url, ENTRY.url, SETTINGS]


@given(MESSAGES)
def test_whatever_people_write_every_receiver_takes_it(said: Message) -> None:
    entry = Entry(said, ENTRY.url)
    rendered = mail(said)
    assert not re.search(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]", rendered.subject)
    assert Page(rendered.html).links == [ENTRY.url, SETTINGS]
    assert teams_title(cards.teams(entry)) is not None
    assert slack_title(cards.slack(entry)) is not None


@given(st.text(), st.integers(2, 50))
def test_one_line_is_one_short_line(text: str, most: int) -> None:
    line = one_line(text, most)
    assert len(line) <= most
    assert "\n" not in line
    assert len(line.splitlines()) <= 1
    assert one_line(line, most) == line


def _texts(value: Any) -> list[dict[str, Any]]:
    if isinstance(value, dict):
        found = [value] if isinstance(value.get("text"), str) else []
        return found + [text for inner in value.values() for text in _texts(inner)]
    return (
        [text for inner in value for text in _texts(inner)]
        if isinstance(value, list)
        else []
    )


def test_a_mail_is_read_in_the_light_and_in_the_dark() -> None:
    """A colour is named only together with what it stands on: else the program that shows it chooses that."""
    digest = rendering.digest([ENTRY], day=date(2026, 12, 1), settings_url=SETTINGS)
    for html in (mail().html, digest.html):
        styles = re.findall(r'style="([^"]*)"', html)
        colours = [one for one in styles if re.search(r"(?<![-\w])color:", one)]
        assert colours
        assert [one for one in colours if "background:" not in one] == []


def test_of_a_fact_its_value_stands_out_and_of_a_rule_its_words() -> None:
    soft = {words for style, words in re.findall(CELLS, mail().html) if SOFT in style}
    assert {"Cost", "Until", "people decide above 2"} <= soft
    assert not {"$59,000", "! 16 GPUs"} & soft
