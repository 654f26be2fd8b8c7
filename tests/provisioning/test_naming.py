"""Names on clusters are derived, never collide, and are never somebody else's."""

import re
import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from provisioning.desired.naming import (
    LONGEST,
    NameRefused,
    check_not_reserved,
    display_name,
    namespace_of,
    namespaces_of,
    slug_of,
)

DNS_1123 = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
SLUG = re.compile(r"[a-z]([a-z0-9-]*[a-z0-9])?")
SLUGS = st.from_regex(r"[a-z]([a-z0-9-]{0,38}[a-z0-9])?", fullmatch=True)
HOSTILE = st.text() | st.text(alphabet="abz09 -._&AZ\n\t{}$;:/\\'\"<>|*", max_size=70)


@pytest.mark.parametrize(
    ("name", "slug"),
    [
        ("Vision", "vision"),
        ("  Vision  Team ", "vision-team"),
        ("R&D", "r-d"),
        ("Ads Ranking 2", "ads-ranking-2"),
        ("a.b_c-d", "a-b-c-d"),
        ("A" * 30, "a" * 30),
        ("Robotik & Großküchen", "robotik-grosskuchen"),
        ("Équipe Vision", "equipe-vision"),
        ("a\u0301b", "ab"),
        ("צוות ראייה", "tsvvt-r-yyh"),
        ("فريق", "fryq"),
        ("視覚チーム", "shijuechimu"),
        ("ひと視覚", "hitoshijue"),
        ("韓국어", "hangugeo"),
        ("ㄅ中", "bzhong"),
        ("Q\u0301ueue", "queue"),
        ("\u0431\u0301\u0430\u0440", "bar"),
        ("Команда зрения", "komanda-zreniya"),
        ("A department whose name goes on and on", "a-department-whose-name-goes-o"),
        ("x", "x"),
    ],
)
def test_a_name_becomes_a_dns_label(name: str, slug: str) -> None:
    assert slug_of(name) == slug


@pytest.mark.parametrize(
    "name",
    [
        "",
        " ",
        "---",
        "...",
        "&",
        "1st",
        "-1",
        "42",
        "default",
        "kube-system",
        "Kube System",
        "kube.public",
        "kube",
        "kueue",
        "Kueue Team",
        "kueue-system",
        "openshift-monitoring",
        "openshift",
        "istio-system",
        "Istio Gateway",
        "azure-arc",
        "system",
        "System:masters",
        "system masters",
        "my-system",
        "My System",
        "gatekeeper-system",
        "quartermaster",
        "admin",
        "root",
        "all",
        "v\u0456sion",
        "\u0430ds",
        "vi\u00adsion",
        "vision\u200b",
        "\uff56\uff49\uff53\uff49\uff4f\uff4e",
        "team\uff11",
        "\u017foft",
        "\u212aube",
        "\U0001f680",
        "\u0410\u0421\u0415",
        "\u0410’\u0421",
        "vision視覚",
        "\u0392\u0391\u039d\u039a team",
        "\u202evision",
        "vision\n",
        "vision\r\nkind: Secret",
        "a\tb",
        "a\x00b",
        "a\x7f",
        "---\na: b",
        "{{ team }}",
        "${HOME}",
        "!!python/object",
        "&anchor *alias!",
        "../../etc",
        "a/b",
        "a;b",
        "$(id)",
        "<b>team</b>",
        "' or 1=1",
    ],
)
def test_it_refuses_what_is_not_a_name_of_a_team(name: str) -> None:
    with pytest.raises(NameRefused):
        slug_of(name)


def test_a_refusal_names_the_letter_and_says_what_would_do() -> None:
    with pytest.raises(NameRefused) as refused:
        slug_of("v\u0456sion")
    assert (
        str(refused.value)
        == "Write each word in one script; “v\u0456sion” mixes cyrillic and latin."
    )
    with pytest.raises(
        NameRefused, match="looks like a Latin one: write it in Latin letters"
    ):
        slug_of("\u0410\u0421\u0415")
    with pytest.raises(NameRefused, match="a control character"):
        slug_of("a\nb")
    with pytest.raises(NameRefused, match="“kube-system” is reserved for the platform"):
        check_not_reserved("kube-system")


@given(HOSTILE)
@example("a" * 30 + " ")
@example("ſystem")
@example("a\u0301 \u0301")
def test_whatever_is_typed_gives_a_dns_label_or_a_refusal(name: str) -> None:
    try:
        slug = slug_of(name)
    except NameRefused:
        return
    assert SLUG.fullmatch(slug)
    assert len(slug) <= 30
    shown = display_name(name)
    assert display_name(shown) == shown
    assert not any(unicodedata.category(each).startswith("C") for each in shown)
    assert slug_of(slug) == slug
    check_not_reserved(slug)
    assert not slug.startswith(("kube-", "openshift-"))
    assert not slug.endswith("-system")


@given(SLUGS, SLUGS)
@example("a" * 40, "b" * 40)
@example("a" * 30, "b" * 30)
@example("a", "b")
def test_a_namespace_is_a_dns_label_of_our_own(team: str, project: str) -> None:
    namespace = namespace_of(team=team, project=project)
    assert DNS_1123.fullmatch(namespace)
    assert len(namespace) <= LONGEST
    assert namespace.startswith("qm-")
    assert not namespace.endswith("-system")
    assert "--" not in namespace.removeprefix(f"qm-{team}-{project}"[:55])
    assert namespace == namespace_of(team=team, project=project)


@pytest.mark.parametrize(
    ("team", "project", "environment", "namespace"),
    [
        ("vision", "detection", "", "qm-vision-detection-091701"),
        ("vision", "detection", "production", "qm-vision-detection-production-e591fa"),
        ("vision", "tracker", "", "qm-vision-tracker-55f32b"),
        ("a" * 40, "b" * 40, "", f"qm-{'a' * 40}-bbbbbbbbbbbb-c49b7e"),
        ("v" * 50, "b-b", "", f"qm-{'v' * 50}-b-ec47d5"),
    ],
)
def test_the_name_of_a_namespace_never_changes(
    team: str, project: str, environment: str, namespace: str
) -> None:
    # Another name is another namespace: what runs in the one that stands would be left behind.
    assert (
        namespace_of(team=team, project=project, environment=environment) == namespace
    )


def test_an_environment_has_the_short_name_or_one_of_its_own_beside_others() -> None:
    of = {"team": "vision", "project": "detection"}
    assert namespaces_of(**of, environment="production") == (
        "qm-vision-detection-091701",
        "qm-vision-detection-production-e591fa",
    )


@given(st.tuples(SLUGS, SLUGS), st.tuples(SLUGS, SLUGS))
@example(("a-b", "c"), ("a", "b-c"))
@example(("a", "b-c-d"), ("a-b-c", "d"))
@example(("a" * 40, "b" * 40), ("a" * 40, "b" * 39 + "c"))
def test_two_projects_never_share_a_namespace(
    one: tuple[str, str], other: tuple[str, str]
) -> None:
    names = {namespace_of(team=team, project=project) for team, project in (one, other)}
    assert len(names) == len({one, other})


@pytest.mark.slow
@given(st.lists(SLUGS, min_size=3, max_size=5))
def test_moving_the_border_between_team_and_project_gives_another_namespace(
    parts: list[str],
) -> None:
    borders = range(1, len(parts))
    splits = {("-".join(parts[:at]), "-".join(parts[at:])) for at in borders}
    assert len(
        {namespace_of(team=team, project=project) for team, project in splits}
    ) == len(splits)
