"""A browser without JavaScript: follows redirects, keeps cookies, fills in the forms it finds in a page."""

from dataclasses import dataclass, field
from html.parser import HTMLParser
from urllib.parse import urljoin, urlsplit

import requests


@dataclass
class Form:
    """A form as a page shows it: where it goes, and the values it would send untouched."""

    action: str = ""
    method: str = "get"
    values: dict[str, str] = field(default_factory=dict)
    buttons: list[tuple[str, str, str]] = field(default_factory=list)

    def button(self, words: str) -> tuple[str, str] | None:
        """(name, value) of the button with these words in its text or value; None when there is none."""
        for name, value, text in self.buttons:
            if words.lower() in f"{text} {value}".lower():
                return name, value
        return None


class _Forms(HTMLParser):
    """Collects the forms of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.forms: list[Form] = []
        self.names: dict[str, Form] = {}
        self.open: Form | None = None
        self.select = self.area = ""
        self.pressed: Form | None = None

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        if tag == "form":
            self.open = self._named(given["id"]) if given.get("id") else Form()
            self.open.action, self.open.method = (
                given.get("action", ""),
                given.get("method", "get").lower(),
            )
            self.forms.append(self.open)
            return
        form = self._form_of(given)
        if form is None:
            return
        if tag == "input":
            self._input(form, given, checked="checked" in given)
        elif tag == "select":
            self.select = given.get("name", "")
        elif tag == "option" and self.select:
            if "selected" in given or self.select not in form.values:
                form.values[self.select] = given.get("value", "")
        elif tag == "textarea":
            self.area = given.get("name", "")
            form.values[self.area] = ""
        elif tag == "button" and given.get("type", "submit") == "submit":
            self.pressed = form
            form.buttons.append(
                (
                    given.get("name", ""),
                    given.get("value", ""),
                    given.get("aria-label", ""),
                )
            )

    def _form_of(self, given: dict[str, str]) -> Form | None:
        """The form that a control belongs to: the one it names, else the one it stands in."""
        if "form" in given:
            return self._named(given["form"])
        return self.open

    def _named(self, name: str) -> Form:
        """The form of this id, which may stand further down than a control that names it."""
        return self.names.setdefault(name, Form())

    def _input(self, form: Form, given: dict[str, str], *, checked: bool) -> None:
        kind, name = given.get("type", "text"), given.get("name", "")
        if kind == "submit":
            form.buttons.append((name, given.get("value", ""), given.get("value", "")))
        elif name and (kind not in ("radio", "checkbox") or checked):
            form.values[name] = given.get("value", "on" if kind == "checkbox" else "")

    def handle_endtag(self, tag: str) -> None:
        if tag == "form":
            self.open = None
        elif tag == "select":
            self.select = ""
        elif tag == "textarea":
            self.area = ""
        elif tag == "button":
            self.pressed = None

    def handle_data(self, data: str) -> None:
        if self.pressed is not None:
            name, value, text = self.pressed.buttons[-1]
            self.pressed.buttons[-1] = (name, value, f"{text} {data.strip()}".strip())
        elif self.area and self.open is not None:
            self.open.values[self.area] += data


@dataclass
class Page:
    """What was answered: status, address and text."""

    status: int
    url: str
    text: str

    def forms(self) -> list[Form]:
        """The forms of the page, in order."""
        parser = _Forms()
        parser.feed(self.text)
        return parser.forms


class FormBrowser:
    """One person's browser; `ca` is trusted besides nobody else."""

    def __init__(self, base: str, ca: str) -> None:
        self.base = base
        self.session = requests.Session()
        self.session.trust_env = False
        self.session.verify = ca
        self.page = Page(0, base, "")

    def get(self, path: str) -> Page:
        """Open an address."""
        return self._show(self.session.get(urljoin(self.base, path), timeout=15))

    def lose_session(self) -> None:
        """Forget the session, as a browser does whose session has ended."""
        for cookie in [
            each for each in self.session.cookies if each.name == "qm_session"
        ]:
            self.session.cookies.clear(cookie.domain, cookie.path, cookie.name)

    def press(self, words: str, **values: str) -> Page:
        """Fill in and send the form that has a button with these words; raises LookupError when there is none."""
        for form in self.page.forms():
            button = form.button(words)
            if button is not None:
                return self._send(form, dict([button]) if button[0] else {}, values)
        shown = " | ".join(
            text for form in self.page.forms() for _, _, text in form.buttons
        )
        raise LookupError(
            f"No button “{words}” on {self.page.url} ({self.page.status}); there are: {shown}"
        )

    def _send(
        self, form: Form, pressed: dict[str, str], values: dict[str, str]
    ) -> Page:
        target = urljoin(self.page.url, form.action or self.page.url)
        # urllib3 adds no Referer; browsers do, and Django's CSRF check wants it over TLS.
        here = urlsplit(self.page.url)
        headers = {"Referer": self.page.url, "Origin": f"{here.scheme}://{here.netloc}"}
        body = {**form.values, **values, **pressed}
        if form.method == "get":
            return self._show(
                self.session.get(target, params=body, headers=headers, timeout=15)
            )
        return self._show(
            self.session.post(target, data=body, headers=headers, timeout=15)
        )

    def _show(self, response: requests.Response) -> Page:
        self.page = Page(response.status_code, response.url, response.text)
        return self.page
