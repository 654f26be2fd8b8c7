"""A compact outline language for structural schemas, and its parser.

A definition starts at the left margin with its name (and ``atomic`` when it is replaced as a whole);
the indented lines below it give a type and the names of the fields that have it:

    Container
      string name image
      []string args
      [name]EnvVar env
      {}quantity limits

``[]X`` is an atomic list, ``[=]X`` a set, ``[a,b]X`` a list of objects keyed by a and b, ``{}X`` a map and
``{!}X`` a map that is replaced as a whole. Scalars: string int bool number quantity time int-or-string;
``any`` is a value of which nothing is known.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

SCALARS = frozenset(
    {"string", "int", "bool", "number", "quantity", "time", "int-or-string"}
)


@dataclass(frozen=True)
class Schema:
    """What one value may hold; ``type`` is a scalar name, ``any``, ``object``, ``map`` or ``list``."""

    type: str
    fields: Mapping[str, "Schema"] = field(default_factory=dict)
    items: "Schema | None" = None
    list_type: str = "atomic"
    keys: tuple[str, ...] = ()
    atomic: bool = False


def _blocks(table: str) -> dict[str, list[str]]:
    blocks: dict[str, list[str]] = {}
    current: list[str] = []
    for line in table.splitlines():
        if not line.strip():
            continue
        if line[0].isspace():
            current.append(line.strip())
        else:
            current = blocks.setdefault(line.strip(), [])
    return blocks


class Definitions:
    """The definitions of one or more outline tables, parsed when first asked for."""

    def __init__(self, *tables: str) -> None:
        self._lines: dict[str, list[str]] = {}
        self._atomic: set[str] = set()
        self._parsed: dict[str, Schema] = {}
        for table in tables:
            for head, lines in _blocks(table).items():
                name, _, flag = head.partition(" ")
                if name in self._lines:
                    raise ValueError(f"schema {name} is defined twice")
                self._lines[name] = lines
                if flag == "atomic":
                    self._atomic.add(name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._lines)

    def get(self, name: str) -> Schema:
        """The schema of a definition; raises KeyError for a name no table defines."""
        if name not in self._parsed:
            fields: dict[str, Schema] = {}
            for line in self._lines[name]:
                kind, *names = line.split()
                for field_name in names:
                    fields[field_name] = self._type(kind)
            self._parsed[name] = Schema("object", fields, atomic=name in self._atomic)
        return self._parsed[name]

    def _type(self, text: str) -> Schema:
        if text.startswith("{"):
            head, _, rest = text.partition("}")
            return Schema("map", items=self._type(rest), atomic=head == "{!")
        if text.startswith("["):
            head, _, rest = text.partition("]")
            return _list(head[1:], self._type(rest))
        if text in SCALARS or text == "any":
            return Schema(text)
        return self.get(text)


def _list(kind: str, items: Schema) -> Schema:
    if kind == "":
        return Schema("list", items=items)
    if kind == "=":
        return Schema("list", items=items, list_type="set")
    return Schema("list", items=items, list_type="map", keys=tuple(kind.split(",")))
