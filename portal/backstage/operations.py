"""An action as its operation in the API's description: where it goes, what it takes, what it gives."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from accounts.directory.backstage import PLUGIN_ID
from accounts.replay import KEY_RULE
from portal.api import description
from portal.backstage.table import ACTIONS, INPUTS, Action

Schema = dict[str, Any]
DIALECT = "https://json-schema.org/draft/2020-12/schema"
KEY, HEADER = "idempotency_key", "Idempotency-Key"
KEY_WORDS = f"{KEY_RULE} In a template the task's id, such as request-${{{{ context.task.id }}}}."
SHOWN_LEVELS = 2
PAGES = frozenset({"next", "previous"})
CURSOR_SCHEMA: Schema = {
    "type": ["string", "null"],
    "description": "The cursor of that page; null where there is none.",
}
PAGE_SCHEMA: Schema = {"type": "string", "description": "Its page in Quartermaster."}


@dataclass(frozen=True)
class Operation:
    """A call of the API; names of the input that stand in its address are `in_path`, those behind the ? `in_query`.

    `path` has one place for the id, as {id}. All other names are the body's, where it takes one.
    """

    action: Action
    method: str
    path: str
    in_path: Mapping[str, str]
    in_query: frozenset[str]
    is_keyed: bool
    input_schema: Schema
    output_schema: Schema

    @property
    def reads(self) -> bool:
        """Whether it changes nothing."""
        return self.method == "GET" or self.action.previews


@cache
def operations() -> Mapping[str, Operation]:
    """Every action by its name."""
    described = description()
    found = {
        operation["operationId"]: (method, path, operation)
        for path, methods in described["paths"].items()
        for method, operation in methods.items()
    }
    # Where the description leads to an address of the API, an action leads to another action.
    names = {found[action.operation][1]: action.name for action in ACTIONS}
    schemas = _renamed(described["components"]["schemas"], names)
    return {
        action.name: _read(action, *found[action.operation], schemas)
        for action in ACTIONS
    }


def _renamed(schemas: Mapping[str, Schema], names: Mapping[str, str]) -> dict[str, Any]:
    text = json.dumps(schemas)
    for path in sorted(names, key=len, reverse=True):
        text = text.replace(path, names[path])
    found: dict[str, Any] = json.loads(text)
    return found


def _told(properties: Mapping[str, Schema]) -> dict[str, Schema]:
    """The properties, with a sentence for each that has none of its own."""
    return {
        name: {"description": INPUTS[name], **schema} if name in INPUTS else schema
        for name, schema in properties.items()
    }


def _read(
    action: Action,
    method: str,
    path: str,
    operation: Mapping[str, Any],
    schemas: Mapping[str, Schema],
) -> Operation:
    named = [
        (name, one)
        for one in operation.get("parameters", ())
        if (name := _name(action, one))
    ]
    taken = {name: _value(one, schemas) for name, one in named}
    body = _json_of(operation.get("requestBody", {}), schemas)
    return Operation(
        action=action,
        method=method.upper(),
        path=path,
        in_path={name: one["name"] for name, one in named if one["in"] == "path"},
        in_query=frozenset(name for name, one in named if one["in"] == "query"),
        is_keyed=KEY in taken,
        input_schema={
            "$schema": DIALECT,
            "type": "object",
            "properties": _told(taken | body.get("properties", {})),
            "required": [
                *(name for name, one in named if one.get("required")),
                *body.get("required", ()),
            ],
            "additionalProperties": False,
        },
        output_schema=_output_of(action, operation, schemas),
    )


def _name(action: Action, parameter: Mapping[str, Any]) -> str:
    """What a parameter is called in the input; empty for one that is not taken."""
    if parameter["in"] == "path":
        return action.id_name
    if parameter["in"] == "query":
        name = str(parameter["name"])
        return "" if name in action.left_out else name
    return KEY if parameter["name"] == HEADER else ""


def _value(parameter: Mapping[str, Any], schemas: Mapping[str, Schema]) -> Schema:
    told = (
        KEY_WORDS if parameter["name"] == HEADER else parameter.get("description", "")
    )
    schema: Schema = _whole(parameter["schema"], schemas)
    return schema | ({"description": told} if told else {})


def _output_of(
    action: Action, operation: Mapping[str, Any], schemas: Mapping[str, Schema]
) -> Schema:
    [answer] = [
        one for code, one in operation["responses"].items() if code.startswith("2")
    ]
    found = _outline(_json_of(answer, schemas), SHOWN_LEVELS)
    page = {"page": PAGE_SCHEMA} if action.page else {}
    if PAGES.issubset(found["properties"]):
        page |= dict.fromkeys(PAGES, CURSOR_SCHEMA)
    return {
        "$schema": DIALECT,
        **found,
        "properties": {**found["properties"], **page},
    }


def _outline(schema: Schema, levels: int) -> Schema:
    """What there is down to so many levels of objects, for whoever writes a template.

    Backstage reads the list before each step of each template, and all of it would be twice as long.
    """
    if "items" in schema:
        return {"type": "array", "items": _outline(schema["items"], levels)}
    if "properties" in schema:
        inner = {
            name: _outline(one, levels - 1)
            for name, one in schema["properties"].items()
        }
        return {"type": "object"} | ({"properties": inner} if levels else {})
    kept = ("type", "format", "enum", "description")
    return {name: schema[name] for name in kept if name in schema}


def _json_of(content: Mapping[str, Any], schemas: Mapping[str, Schema]) -> Schema:
    """The schema of a body as JSON; an empty one where there is none."""
    told = content.get("content", {}).get("application/json", {}).get("schema", {})
    return dict(_whole(told, schemas))


def _whole(
    schema: Any, schemas: Mapping[str, Schema], within: frozenset[str] = frozenset()
) -> Any:
    """A schema with what it refers to put in its place; what refers to itself may be anything there."""
    if isinstance(schema, list):
        return [_whole(one, schemas, within) for one in schema]
    if not isinstance(schema, dict):
        return schema
    if reference := schema.get("$ref"):
        name = str(reference).rpartition("/")[2]
        return {} if name in within else _whole(schemas[name], schemas, within | {name})
    return {key: _whole(value, schemas, within) for key, value in schema.items()}


def listed() -> Iterator[dict[str, Any]]:
    """Every action as Backstage's action registry lists it.

    All three attributes and both schemas are there in each: one that lacks them breaks the actions of every plugin.
    """
    for name, operation in operations().items():
        action = operation.action
        yield {
            "id": f"{PLUGIN_ID}:{name}",
            "pluginId": PLUGIN_ID,
            "name": name,
            "title": action.title,
            "description": action.description,
            "attributes": {
                "readOnly": operation.reads,
                "destructive": action.destructive,
                "idempotent": operation.reads
                or operation.is_keyed
                or action.destructive,
            },
            "schema": {
                "input": operation.input_schema,
                "output": operation.output_schema,
            },
        }
