"""Pages as a browser takes them apart: elements with what is around them, forms with their fields, texts."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser

VOID = frozenset(
    {
        "area",
        "base",
        "br",
        "col",
        "embed",
        "hr",
        "img",
        "input",
        "link",
        "meta",
        "source",
        "track",
        "wbr",
    }
)


@dataclass
class Element:
    """An element; `texts` are the texts directly in it."""

    tag: str
    attrs: dict[str, str]
    parent: "Element | None" = None
    children: list["Element"] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)

    def walk(self) -> Iterator["Element"]:
        """This element and everything in it, in order."""
        yield self
        for child in self.children:
            yield from child.walk()

    def around(self) -> Iterator["Element"]:
        """This element and everything around it, from the inside."""
        here: Element | None = self
        while here is not None:
            yield here
            here = here.parent

    def within(self, tag: str) -> "Element | None":
        """The nearest element of this kind around it."""
        return next((each for each in self.around() if each.tag == tag), None)

    @property
    def classes(self) -> set[str]:
        """Its classes."""
        return set(self.attrs.get("class", "").split())

    @property
    def words(self) -> str:
        """All text in it."""
        return " ".join(
            " ".join(text for each in self.walk() for text in each.texts).split()
        )


class _Builder(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.root = self.here = Element("document", {})

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        made = Element(tag, {name: value or "" for name, value in attrs}, self.here)
        self.here.children.append(made)
        if tag not in VOID:
            self.here = made

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.here = self.here.parent or self.root

    def handle_endtag(self, tag: str) -> None:
        opened = self.here.within(tag)
        if opened is not None and opened.parent is not None:
            self.here = opened.parent

    def handle_data(self, data: str) -> None:
        if data.strip():
            self.here.texts.append(data)


def parsed(html: str) -> Element:
    """The document."""
    builder = _Builder()
    builder.feed(html)
    return builder.root


def sent_by(form: Element) -> dict[str, list[str]]:
    """What a browser sends of a form as it stands, but the token that Django's tests need not."""
    found: dict[str, list[str]] = {}
    for one in form.walk():
        name, kind = one.attrs.get("name", ""), one.attrs.get("type")
        if one.tag == "textarea":
            found[name] = ["".join(one.texts).removeprefix("\n")]
        elif one.tag == "input" and (
            kind not in ("checkbox", "radio") or "checked" in one.attrs
        ):
            unsaid = "on" if kind in ("checkbox", "radio") else ""
            found.setdefault(name, []).append(one.attrs.get("value", unsaid))
        elif one.tag == "select":
            options = [each for each in one.walk() if each.tag == "option"]
            chosen = next(
                (each for each in options if "selected" in each.attrs), options[0]
            )
            found[name] = [chosen.attrs["value"]]
    found.pop("csrfmiddlewaretoken", None)
    found.pop("", None)
    return found
