"""Who may do what, all of it: the committed table says what every address answers to everybody."""

import os
from pathlib import Path

import pytest
from django.template import Engine, Template
from django.template.loaders.cached import Loader
from pytest_django import Settings

from tests.portal.permission_matrix import (
    BOUND,
    METHODS,
    ROLES,
    Cell,
    Prober,
    routes,
    things,
)
from tests.world import world

pytestmark = pytest.mark.slow

TABLE = Path(__file__).with_name("permission_matrix.txt")
HEAD = f"{'route':<52}{'method':<8}{'object':<9}" + " ".join(
    f"{role[:9]:<9}" for role in ROLES
)
Key = tuple[str, str, str]
REWRITE = "QM_WRITE_MATRIX"


# Thousands of calls are a minute's work: in parts, so that every worker has its share. One worker writes the table.
PARTS = 4


@pytest.fixture(params=range(PARTS))
def part(request: pytest.FixtureRequest) -> list[str]:
    """The routes of one part."""
    return [*routes()][request.param :: PARTS]


@pytest.fixture
def _refusals_are_blank(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have pages that refuse drawn empty: how they look is shown elsewhere, and drawing thousands takes a minute."""
    engine = Engine.get_default()
    [cached] = engine.template_loaders
    assert isinstance(cached, Loader)
    for name in ("403.html", "404.html", "errors/405.html"):
        monkeypatch.setitem(
            cached.get_template_cache, name, Template("", engine=engine)
        )


@pytest.fixture
def answers(
    db: None, settings: Settings, _refusals_are_blank: None, part: list[str]
) -> dict[Key, dict[str, Cell]]:
    """What everybody is answered, by route, method and object."""
    settings.RATES = dict.fromkeys(("read", "write", "sign-in", "export"), "1000000/h")
    prober = Prober(world())
    found: dict[Key, dict[str, Cell]] = {}
    for route in part:
        for method in METHODS:
            for thing in things(route):
                # What a platform lead cannot call so is not called so by anybody: one more shows it.
                lead = prober.call(route, method, "platform_lead", thing)
                roles = ("anonymous",) if lead.status == 405 else ROLES
                cells = {
                    role: prober.call(route, method, role, thing) for role in roles
                }
                found[route, method, thing] = cells | {"platform_lead": lead}
                if lead.status == 405:
                    break  # whose thing it is makes no difference
    return found


def line(key: Key, cells: dict[str, Cell]) -> str:
    """A line of the table."""
    route, method, thing = key
    codes = " ".join(
        f"{cells[role].status if role in cells else '.':<9}" for role in ROLES
    )
    return f"{route or '(home)':<51} {method:<8}{thing:<9}{codes}".rstrip()


@pytest.mark.timeout(600)
def test_every_address_answers_everybody_as_the_table_says(
    answers: dict[Key, dict[str, Cell]], part: list[str]
) -> None:
    now = [line(key, cells) for key, cells in answers.items()]
    shown = {route or "(home)" for route in part}
    if os.environ.get(REWRITE):
        rewrite(now, shown)
    expected = [
        each for each in TABLE.read_text().splitlines()[1:] if route_of(each) in shown
    ]
    differing = sorted(set(now) ^ set(expected))
    assert not differing, (
        f"look at each line; {REWRITE}=1 writes the table:\n" + "\n".join(differing)
    )
    _another_teams_thing_is_like_a_missing_one(answers)
    _nothing_breaks(answers)


def test_the_table_is_of_routes_that_are_there_and_has_its_thousand_cells() -> None:
    head, *lines = TABLE.read_text().splitlines()
    assert head == HEAD
    assert {route_of(each) for each in lines} == {
        route or "(home)" for route in routes()
    }
    assert len(lines) * len(ROLES) >= 1000


def rewrite(now: list[str], shown: set[str]) -> None:
    """Put these lines in the place of all that the table has of their routes, and drop routes that are gone."""
    order = {route or "(home)": place for place, route in enumerate(routes())}
    kept = [
        each
        for each in TABLE.read_text().splitlines()[1:]
        if route_of(each) in order.keys() - shown
    ]
    # Within a route the lines stay as they were called.
    lines = sorted([*kept, *now], key=lambda each: order[route_of(each)])
    TABLE.write_text("\n".join([HEAD, *lines]) + "\n")


def route_of(line_: str) -> str:
    """The route of a line of the table."""
    return line_.split(maxsplit=1)[0]


def _another_teams_thing_is_like_a_missing_one(
    answers: dict[Key, dict[str, Cell]],
) -> None:
    for (route, method, thing), cells in answers.items():
        missing = answers.get((route, method, "missing"))
        if thing != "other" or missing is None:
            continue
        for role in BOUND:
            assert cells[role] == missing[role], (route, method, role)


def _nothing_breaks(answers: dict[Key, dict[str, Cell]]) -> None:
    for key, cells in answers.items():
        for role, cell in cells.items():
            # 503 and 502: Entra ID is not there in this test.
            assert cell.status < 500 or cell.status in (502, 503), (key, role)
