"""What is submitted: the place, the kind of GPU and the template that a person left to be chosen, and their values."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

from qm import words
from qm.calls import option_named
from qm.endings import Code, Ended

DURATION = re.compile(r"(?:(\d+)d)?(?:(\d+)h)?(?:(\d+)m(?:in)?)?")
MINUTES = (1_440, 60, 1)
# A template that trains on several nodes takes a program and comes to an end by itself.
OF_SEVERAL_NODES = frozenset({"nodes", "program", "minutes"})
SINGLE_NODE = "single-node"
TRUTH: Mapping[str, bool] = {"yes": True, "true": True, "no": False, "false": False}
Named = Mapping[str, Any]


def submission(
    given: Named,
    program: Sequence[str],
    *,
    places: Sequence[Named],
    templates: Sequence[Named],
) -> dict[str, Any]:
    """The body of a submission, from the options of `qm train`; raises Ended naming what is to be chosen or mended."""
    script = script_of(given["script"]) if given["script"] else None
    claims = [claim_of(one) for one in given["claims"]]
    pairs = [pair(one, option="--set") for one in given["parameters"]]
    values = {name: given[name] for name in ("image", "gpus", "nodes", "checkpoint")}
    values["minutes"] = minutes(given["limit"]) if given["limit"] else None
    where = place(
        places, name=given["place"], team=given["team"], flavor=given["flavor"]
    )
    needs_files = bool(script or given["git"] or claims)
    chosen = template_of(
        templates,
        where,
        slug=given["template"],
        nodes=given["nodes"],
        needs_files=needs_files,
    )
    values = {name: value for name, value in values.items() if value not in (None, "")}
    values.update(values_of(pairs, chosen))
    values = without_one_node(values, chosen)
    if not takes_nodes(values, chosen):
        raise one_node_alone(
            values["nodes"], chosen, templates, where, needs_files=needs_files
        )
    refuse_time(given["limit"], chosen)
    if words_of_it := program_of(
        program, script["file"] if script else "", values, chosen
    ):
        values["program"] = words_of_it
    return {
        "tenancy": where["tenancy"],
        "template": chosen["slug"],
        "title": given["title"]
        or title_of(**{each: given[each] for each in ("script", "git", "image")}),
        "flavor": flavor_of(
            where,
            flavor=given["flavor"],
            gpus=values.get("gpus"),
            nodes=values.get("nodes", 1),
            memory=chosen["gpu_memory"],
        ),
        "priority": given["priority"],
        "values": values,
        "script": script,
        "repository": repository_of(given),
        "claims": claims,
        "variables": dict(pair(one, option="--env") for one in given["variables"]),
        **secrets_of(given),
        **topology_of(given, where),
    }


def repository_of(given: Named) -> dict[str, str] | None:
    """The source of --git with its revision, and the Secret of a private one; None without. Raises Ended."""
    if not given["git"] and given["git_secret"]:
        raise Ended("--git-secret is for the address of --git.", Code.USAGE)
    if not given["git"]:
        return None
    secret = {"secret": given["git_secret"]} if given["git_secret"] else {}
    return {"url": given["git"], "revision": given["ref"], **secret}


def secrets_of(given: Named) -> dict[str, Any]:
    """The variables of --secret; nothing without. Raises Ended for one that is not NAME=SECRET:KEY."""
    found = []
    for text in given["secrets"]:
        variable, source = pair(text, option="--secret")
        secret, _, key = source.partition(":")
        if not secret or not key:
            raise Ended(f"--secret takes NAME=SECRET:KEY, not {text!r}.", Code.USAGE)
        found.append({"variable": variable, "secret": secret, "key": key})
    return {"secrets": found} if found else {}


def topology_of(given: Named, place: Named) -> dict[str, Any]:
    """How close the nodes are, from --within or --near; nothing without. Raises Ended for a level that there is not."""
    named = given["within"] or given["near"]
    if not named:
        return {}
    levels = dict.fromkeys(level for one in place["flavors"] for level in one["levels"])
    found = [one for one in levels if named in (one, one.rpartition("/")[2])]
    if len(found) != 1:
        known = ", ".join(levels) or "none"
        raise Ended(
            f"No topology of {words.place_name(place)} has one level {named}: {known}.",
            Code.USAGE,
        )
    return {"topology": {"level": found[0], "required": bool(given["within"])}}


def changes(given: Named, *, template: Named) -> dict[str, Any]:
    """What differs from the earlier run, from the options of `qm again`; empty where nothing does."""
    values = {name: given[name] for name in ("image", "gpus", "nodes")}
    values["minutes"] = minutes(given["limit"]) if given["limit"] else None
    values = {name: value for name, value in values.items() if value not in (None, "")}
    values.update(
        values_of((pair(one, option="--set") for one in given["parameters"]), template)
    )
    values = without_one_node(values, template)
    refuse_time(given["limit"], template)
    found = {
        "template": given["template"],
        "title": given["title"],
        "flavor": given["flavor"],
        "priority": given["priority"],
        "values": values,
        "variables": dict(pair(one, option="--env") for one in given["variables"]),
        **secrets_of(given),
    }
    return {name: value for name, value in found.items() if value}


def place(
    places: Sequence[Named], *, name: str = "", team: str = "", flavor: str = ""
) -> Named:
    """The one place that is meant; raises Ended naming those that there are to choose from."""
    found = [
        one
        for one in places
        if (not name or name in (words.place_name(one), one["namespace"]))
        and (not team or one["team"]["slug"] == team)
    ]
    if not places:
        raise Ended(
            "You may start runs nowhere yet. What is needed first says: qm places",
            Code.REFUSED,
        )
    if not found:
        raise Ended(
            f"You may start no runs there. Your places: {_names(places)}.",
            Code.NOT_FOUND,
        )
    # A place that cannot be meant is no choice; where nothing else is left, the portal says why not.
    open_ones = [one for one in found if not one["follows_git"]] or found
    holding = [one for one in open_ones if not flavor or flavor in _flavors(one)]
    found = holding or open_ones
    if not holding and len(found) > 1:
        whose = f"team {team}" if team else "yours"
        raise Ended(
            f"No place of {whose} has GPUs of kind {flavor}: {_held(found)}.",
            Code.USAGE,
        )
    if len(found) > 1:
        raise Ended(f"Choose a place with --place: {_names(found)}.", Code.USAGE)
    return found[0]


def flavor_of(
    place: Named, *, flavor: str, gpus: int | None, nodes: int = 1, memory: int = 0
) -> str:
    """The kind of GPU; empty for a run without. Raises Ended where there are several to choose from, or none.

    Where the template says how many GB of memory a GPU needs, it is the smallest that has them; a slice only for a run
    of one.
    """
    held = _flavors(place)
    if flavor or gpus == 0:
        return flavor
    if not held:
        where = words.place_name(place)
        raise Ended(
            f"Your team holds no GPUs on {where}. Ask for some with qm ask, or use --gpus 0.",
            Code.REFUSED,
        )
    are_together = (gpus or 1) > 1 or nodes > 1
    fit = [
        (one["memory"], one["flavor"])
        for one in place["flavors"]
        if one["memory"] >= memory > 0 and not (are_together and one["is_slice"])
    ]
    if fit:
        return str(min(fit)[1])
    if len(held) > 1:
        raise Ended(
            f"Choose a kind of GPU with --flavor: {', '.join(held)}.", Code.USAGE
        )
    return held[0]


def _takes(template: Named, parameter: str) -> bool:
    return any(one["name"] == parameter for one in template["parameters"])


def without_one_node(values: Named, template: Named) -> dict[str, Any]:
    """One node is what a template without that parameter has anyway; a script that tries 1, 2 and 4 names it."""
    is_said = values.get("nodes") == 1 and not _takes(template, "nodes")
    return {
        name: each for name, each in values.items() if name != "nodes" or not is_said
    }


def takes_nodes(values: Named, template: Named) -> bool:
    """Whether the template runs on as many nodes as are asked for, as far as it says."""
    return "nodes" not in values or _takes(template, "nodes")


def one_node_alone(
    nodes: object,
    template: Named,
    templates: Sequence[Named],
    place: Named,
    *,
    needs_files: bool,
) -> Ended:
    """The refusal of several nodes for a template of one, which names those that run on several in the place."""
    fitting, offered = _of_several_nodes(templates, place, needs_files=needs_files)
    if not offered:
        return _no_template_of_several(place, fitting)
    slugs = ", ".join(one["slug"] for one in offered)
    return Ended(
        f"--nodes {nodes}: the template {template['slug']} runs on one node. On several nodes of "
        f"{words.place_name(place)} run: {slugs}. Choose one with --template.",
        Code.USAGE,
    )


def _of_several_nodes(
    templates: Sequence[Named], place: Named, *, needs_files: bool
) -> tuple[list[Named], list[Named]]:
    """The templates that train on several nodes, and those of them that the place has all for."""
    fitting = [
        one
        for one in templates
        if {each["name"] for each in one["parameters"]} >= OF_SEVERAL_NODES
        and (one["accepts_files"] or not needs_files)
        # A platform team's own recipe is for who names it.
        and one["slug"] == one["shape"]
    ]
    missing = _missing(place)
    return fitting, [one for one in fitting if missing.get(one["slug"]) == ""]


def _no_template_of_several(place: Named, fitting: Sequence[Named]) -> Ended:
    missing = _missing(place)
    reasons = "\n".join(
        f"  {one['slug']}: {missing.get(one['slug'], '')}" for one in fitting
    )
    return Ended(
        f"No template of {words.place_name(place)} takes several nodes:\n{reasons}",
        Code.REFUSED,
    )


def _missing(place: Named) -> dict[str, str]:
    """What the place lacks for each template."""
    return {one["slug"]: one["missing"] for one in place["templates"]}


def no_template(slug: str, templates: Sequence[Named]) -> Ended:
    """The refusal of a template that there is not."""
    known = ", ".join(one["slug"] for one in templates)
    return Ended(f"There is no template {slug}. There are: {known}.", Code.NOT_FOUND)


def template_of(
    templates: Sequence[Named],
    place: Named,
    *,
    slug: str,
    nodes: int | None,
    needs_files: bool,
) -> Named:
    """The template that was named, or the first of the place for so many nodes; raises Ended where there is none."""
    slug = slug or ("" if (nodes or 1) > 1 else SINGLE_NODE)
    if slug:
        named = [one for one in templates if one["slug"] == slug]
        if not named:
            raise no_template(slug, templates)
        return named[0]
    fitting, offered = _of_several_nodes(templates, place, needs_files=needs_files)
    if not offered:
        raise _no_template_of_several(place, fitting)
    return offered[0]


def program_of(
    arguments: Sequence[str], script: str, values: Named, template: Named
) -> list[str]:
    """The program: the words as given, behind the script where they do not name it."""
    if not script or script in arguments:
        return [*arguments]
    launchers = [
        one["default"] for one in template["parameters"] if one["name"] == "launcher"
    ]
    is_launched = values.get("launcher", *launchers[:1] or [None]) == "torchrun"
    return [*([] if is_launched else ["python"]), script, *arguments]


def values_of(pairs: Iterable[tuple[str, str]], template: Named) -> dict[str, Any]:
    """Parameters as the template takes them; what it does not know goes along, for the portal to refuse by name."""
    kinds = {one["name"]: one["type"] for one in template["parameters"]}
    return {name: _typed(name, text, kinds.get(name, "text")) for name, text in pairs}


def pair(text: str, *, option: str) -> tuple[str, str]:
    """NAME=VALUE; raises Ended for anything else."""
    name, equals, value = text.partition("=")
    if not name or not equals:
        raise Ended(f"{option} takes NAME=VALUE, not {text!r}.", Code.USAGE)
    return name, value


def claim_of(text: str) -> dict[str, Any]:
    """A volume from NAME:/path or NAME:/path:ro."""
    name, _, path = text.partition(":")
    path, _, mode = path.partition(":")
    if not name or not path.startswith("/") or mode not in ("", "ro", "rw"):
        raise Ended(
            f"--claim takes NAME:/path or NAME:/path:ro, not {text!r}.", Code.USAGE
        )
    return {"name": name, "path": path, "read_only": mode == "ro"}


def minutes(text: str, *, of: str = "--time") -> int:
    """Minutes from 4h, 90m, 1h30m, 2d, or a plain number of them; raises Ended for anything else `of` an input."""
    found = DURATION.fullmatch(text)
    if text.isdigit():
        return int(text)
    if not text or found is None:
        raise Ended(
            f"{of} takes a time such as 4h, 90m, 1h30m or 2d, not {text!r}.",
            Code.USAGE,
        )
    return sum(int(part or 0) * size for part, size in zip(found.groups(), MINUTES))


def refuse_time(text: str, template: Named) -> None:
    """Raises Ended for a time that the template does not take."""
    found = next(
        (one for one in template["parameters"] if one["name"] == "minutes"), None
    )
    if not text or found is None:
        return
    if not found["minimum"] <= minutes(text) <= found["maximum"]:
        raise Ended(
            f"--time {text}: this template takes {words.limits(found)}.", Code.USAGE
        )


def script_of(path: str) -> dict[str, str]:
    """A script as it goes along; raises Ended for what is no text file."""
    try:
        return {"file": Path(path).name, "text": Path(path).read_text(encoding="utf-8")}
    except UnicodeDecodeError:
        raise Ended(f"--script {path} is no text in UTF-8.", Code.USAGE) from None
    except OSError as error:
        raise Ended(
            f"--script {path} cannot be read: {error.strerror}.", Code.USAGE
        ) from None


def title_of(*, script: str, git: str, image: str) -> str:
    """What a run is called that was given no name: after its script, its repository or its image."""
    if script:
        return Path(script).stem
    return (
        PurePosixPath(git.rstrip("/")).stem
        if git
        else PurePosixPath(image.partition("@")[0]).name.partition(":")[0]
    )


def _typed(name: str, text: str, kind: str) -> Any:
    if kind == "words":
        return shlex.split(text)
    if kind == "flag" and text.lower() in TRUTH:
        return TRUTH[text.lower()]
    if kind == "count":
        if not re.fullmatch(r"-?\d+", text):
            raise Ended(
                f"{option_named(name)}: {text!r} is no whole number.", Code.USAGE
            )
        return int(text)
    return text


def _flavors(place: Named) -> list[str]:
    return [one["flavor"] for one in place["flavors"]]


def _held(places: Sequence[Named]) -> str:
    return "; ".join(
        f"{words.place_name(one)} has {', '.join(_flavors(one)) or 'none'}"
        for one in places
    )


def _names(places: Sequence[Named]) -> str:
    return ", ".join(
        f"{words.place_name(one)} (team {one['team']['slug']})" for one in places
    )
