"""No page offers anybody a main button that would only tell them that they may not press it."""

import pytest
from django.db import transaction
from django.test import Client

from tests.pages import Element
from tests.portal.permission_matrix import Prober
from tests.portal.walk import pages
from tests.world import world

pytestmark = [pytest.mark.django_db, pytest.mark.slow]
ROLES = ("outsider", "member", "team_lead", "platform_lead", "leadership", "auditor")


def primaries(page: Element) -> list[Element]:
    return [
        each
        for each in page.walk()
        if "button--primary" in each.classes
        and not {"disabled", "aria-disabled"} & each.attrs.keys()
    ]


def form_of(button: Element) -> Element | None:
    """The form that it sends: the one around it, or the one that it names."""
    if "form" not in button.attrs:
        return button.within("form")
    *_, document = button.around()
    return next(
        each for each in document.walk() if each.attrs.get("id") == button.attrs["form"]
    )


def sent_with(form: Element) -> dict[str, str]:
    """What a browser sends of a form that nobody has touched."""
    fields = {}
    for each in form.walk():
        name, kind = each.attrs.get("name", ""), each.attrs.get("type", "")
        if not name or "disabled" in each.attrs:
            continue
        if each.tag == "input" and (
            kind not in ("radio", "checkbox", "submit") or "checked" in each.attrs
        ):
            fields[name] = each.attrs.get("value", "on" if kind == "checkbox" else "")
        elif each.tag == "textarea":
            fields[name] = each.words
        elif each.tag == "select":
            options = [option for option in each.walk() if option.tag == "option"]
            chosen = [
                option for option in options if "selected" in option.attrs
            ] or options[:1]
            fields.update(
                (name, option.attrs.get("value", option.words)) for option in chosen
            )
    return fields


def pressed(browser: Client, path: str, button: Element) -> int:
    """What comes of pressing it; nothing of it stays."""
    with transaction.atomic():
        if button.tag == "a":
            answer = browser.get(button.attrs["href"], follow=True)
        else:
            form = form_of(button)
            assert form is not None, f"{path}: a button outside of any form"
            fields = sent_with(form)
            if button.attrs.get("name"):
                fields[button.attrs["name"]] = button.attrs.get("value", "")
            send = browser.post if form.attrs.get("method") == "post" else browser.get
            answer = send(form.attrs.get("action") or path, fields)
        transaction.set_rollback(True)
    return int(answer.status_code)


@pytest.mark.timeout(300)
@pytest.mark.parametrize("role", ROLES)
def test_no_main_button_is_shown_to_who_may_not_press_it(role: str) -> None:
    prober = Prober(world())
    browser = prober.pages[role]
    wrong, tried = [], 0
    for path, page in pages(prober, role):
        for button in primaries(page):
            if button.attrs.get("href", "").startswith("#"):
                continue
            tried += 1
            status = pressed(browser, path, button)
            if status in (403, 404, 405) or status >= 500:
                wrong.append(f"{path}: “{button.words}” answers {status}")
    assert not wrong, "\n".join(wrong)
    assert tried >= 5


def test_who_is_in_no_team_is_offered_no_ask_anywhere() -> None:
    prober = Prober(world())
    for path, page in pages(prober, "auditor"):
        offers = [
            each.words
            for each in page.walk()
            if each.attrs.get("href", "").startswith("/requests/new")
        ]
        assert not offers, (path, offers)
