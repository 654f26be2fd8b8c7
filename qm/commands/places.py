"""Where runs may be started, and by which templates."""

from __future__ import annotations

import click

from qm import choosing, completing, words
from qm.calls import option_named
from qm.commands.options import as_json, portal


@click.command()
@as_json
def places(is_json: bool) -> None:
    """Where you may start runs. Each place has the GPUs held there, and its templates."""
    found = portal().get("places/")
    if is_json:
        return words.printed(found)
    for one in found["results"]:
        missing = [each for each in one["templates"] if each["missing"]]
        click.echo(words.place_name(one))
        rows = [
            (
                "team",
                f"{one['team']['name']} ({one['team']['slug']}), project {one['project']}",
            ),
            ("GPUs", "; ".join(map(words.pool, one["flavors"])) or "none held"),
            (
                "topology",
                ", ".join(
                    dict.fromkeys(
                        each for kind in one["flavors"] for each in kind["levels"]
                    )
                ),
            ),
            (
                "templates",
                ", ".join(
                    each["slug"] for each in one["templates"] if not each["missing"]
                ),
            ),
            ("priorities", ", ".join(one["priorities"])),
            ("volumes", ", ".join(one["volumes"])),
            (
                "runs",
                "not by the portal: this cluster follows Git"
                if one["follows_git"]
                else "",
            ),
            *((f"not {each['slug']}", each["missing"]) for each in missing),
        ]
        click.echo(words.facts(rows) + "\n")
    if not found["results"]:
        has_team = bool(portal().get("me/")["teams"])
        words.note(
            "Nowhere yet: your team needs a namespace on a cluster, and you ask for one in the portal."
            if has_team
            else "Nowhere yet: you are in no team. Bring one on board (qm onboard), or join the group of one."
        )
    return None


@click.command()
@click.argument("slug", required=False, default="", shell_complete=completing.templates)
@as_json
def templates(slug: str, is_json: bool) -> None:
    """The templates. With SLUG, what one of them asks for."""
    found = portal().get("templates/")
    if not slug:
        lines = [(one["slug"], one["title"], one["help"]) for one in found["results"]]
        return (
            words.printed(found)
            if is_json
            else click.echo(words.table(("template", "title", "what for"), lines))
        )
    one = next((one for one in found["results"] if one["slug"] == slug), None)
    if one is None:
        raise choosing.no_template(slug, found["results"])
    if is_json:
        return words.printed(one)
    files = "" if one["accepts_files"] else " Its program and data come with the image."
    rows = [
        (
            option_named(each["name"]),
            words.default(each),
            words.limits(each),
            f"{each['title']}: {each['help']}",
        )
        for each in one["parameters"]
    ]
    click.echo(f"{one['title']} ({one['kind']}): {one['help']}{files}\n")
    return click.echo(
        words.table(("option", "unless given", "takes", "what it is"), rows)
    )
