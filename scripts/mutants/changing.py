"""The small changes of a module's source that its tests should notice. Pure."""

import ast
import re
from collections.abc import Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

OTHER_OPERATOR: Mapping[type[ast.AST], Any] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.And: ast.Or,
    ast.Or: ast.And,
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult,
    ast.BitOr: ast.BitAnd,
    ast.BitAnd: ast.BitOr,
}
OTHER_FUNCTION = {"min": "max", "max": "min", "any": "all", "all": "any"}
NUMBER = re.compile(r"\d+(\.\d+)?")
# A key or a value that decides something. Sentences for people are left out: a test of them would only repeat them.
WORD = re.compile(r"\S+")
# What a dataclass keeps its callers from, and how it lies in memory: the module itself computes the same without.
DATACLASS_OPTIONS = frozenset({"frozen", "kw_only", "slots"})
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
# A step on the way from the module to a node: the name of a field, and the index where the field is a list.
Way = tuple[tuple[str, int | None], ...]


@dataclass(frozen=True)
class Mutant:
    """A module with one change; `function` is the outermost function around it, None where importing it runs it."""

    line: int
    before: str
    after: str
    function: str | None
    tree: ast.Module


def mutants(source: str) -> list[Mutant]:
    """One for each small change, in the order of the source."""
    tree = ast.parse(source)
    found = [
        _mutant(tree, way, node, changed)
        for way, node in _nodes(tree, ())
        for changed in _changes(node, _at(tree, way[:-1]))
    ]
    return sorted(found, key=lambda each: each.line)


def _nodes(node: ast.AST, way: Way) -> Iterator[tuple[Way, ast.AST]]:
    """Every node below that runs, with its way; types, docstrings and the list of public names do not."""
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns", "type_params"):
            continue
        for index, child in enumerate(value if isinstance(value, list) else [value]):
            if isinstance(child, ast.AST) and not _is_text(child):
                here: Way = (*way, (name, index if isinstance(value, list) else None))
                yield here, child
                yield from _nodes(child, here)


def _is_text(node: ast.AST) -> bool:
    if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
        return True
    is_docstring = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    return is_docstring or isinstance(node, (ast.JoinedStr, ast.Import, ast.ImportFrom))


def _mutant(tree: ast.Module, way: Way, node: ast.AST, changed: ast.AST) -> Mutant:
    copied = deepcopy(tree)
    name, index = way[-1]
    parent = _at(copied, way[:-1])
    if index is None:
        setattr(parent, name, changed)
    else:
        getattr(parent, name)[index] = changed
    shown = _shown(tree, way)
    return Mutant(
        line=getattr(shown, "lineno", 0),
        before=ast.unparse(shown),
        after=ast.unparse(_at(copied, way[: _depth(tree, way)])),
        function=_function(tree, way),
        tree=ast.fix_missing_locations(copied),
    )


def _at(tree: ast.AST, way: Way) -> ast.AST:
    node = tree
    for name, index in way:
        value = getattr(node, name)
        node = value if index is None else value[index]
    return node


def _depth(tree: ast.AST, way: Way) -> int:
    """How far down the way the statement or condition stands that shows the change with what is around it."""
    for depth in range(len(way), 0, -1):
        node, name = _at(tree, way[:depth]), way[depth - 1][0]
        is_plain = isinstance(node, ast.stmt) and not isinstance(
            node, (*FUNCTIONS, ast.ClassDef)
        )
        if name in ("test", "iter", "ifs", "keys", "values") and hasattr(
            node, "lineno"
        ):
            return depth
        if is_plain or isinstance(node, (ast.arg, ast.keyword)):
            return depth
    return len(way)


def _shown(tree: ast.AST, way: Way) -> ast.AST:
    return _at(tree, way[: _depth(tree, way)])


def _function(tree: ast.AST, way: Way) -> str | None:
    """The qualified name of the outermost function whose body the way leads into."""
    names: list[str] = []
    for depth in range(1, len(way)):
        node = _at(tree, way[:depth])
        if isinstance(node, ast.ClassDef) and way[depth][0] == "body":
            names.append(node.name)
        elif isinstance(node, FUNCTIONS):
            return ".".join([*names, node.name]) if way[depth][0] == "body" else None
    return None


def _changes(node: ast.AST, parent: ast.AST) -> Iterator[ast.AST]:
    """What may stand there instead."""
    if isinstance(node, ast.stmt):
        yield from _other_statements(node)
    elif isinstance(node, ast.expr):
        yield from _other_expressions(node, parent)
        if _is_bare_condition(node, parent):
            yield ast.copy_location(ast.UnaryOp(ast.Not(), node), node)


def _other_statements(node: ast.stmt) -> Iterator[ast.stmt]:
    if isinstance(
        node,
        (
            ast.Expr,
            ast.AugAssign,
            ast.Raise,
            ast.Continue,
            ast.Break,
            ast.Assert,
            ast.Delete,
        ),
    ):
        yield ast.copy_location(ast.Pass(), node)
    elif isinstance(node, ast.Return) and not isinstance(
        node.value, (ast.Constant, type(None))
    ):
        yield ast.copy_location(ast.Return(ast.Constant(None)), node)


def _other_expressions(node: ast.expr, parent: ast.AST) -> Iterator[ast.expr]:
    match node:
        case ast.Compare():
            for index, operator in enumerate(node.ops):
                ops = [
                    *node.ops[:index],
                    OTHER_OPERATOR[type(operator)](),
                    *node.ops[index + 1 :],
                ]
                yield ast.copy_location(
                    ast.Compare(node.left, ops, node.comparators), node
                )
        case ast.BoolOp():
            yield ast.copy_location(
                ast.BoolOp(OTHER_OPERATOR[type(node.op)](), node.values), node
            )
        case ast.BinOp() if type(node.op) in OTHER_OPERATOR and not _has_text_or_none(
            node
        ):
            yield ast.copy_location(
                ast.BinOp(node.left, OTHER_OPERATOR[type(node.op)](), node.right), node
            )
        case ast.UnaryOp(op=ast.Not() | ast.USub()):
            yield node.operand
        case ast.Name(id=name) if name in OTHER_FUNCTION and isinstance(
            parent, ast.Call
        ):
            yield ast.copy_location(ast.Name(OTHER_FUNCTION[name], node.ctx), node)
        case ast.Constant() if not _is_dataclass_option(parent):
            yield from (
                ast.copy_location(ast.Constant(value), node)
                for value in _other_values(node.value)
            )


def _has_text_or_none(node: ast.BinOp) -> bool:
    """Whether it joins texts, or names a type that may be None: no other operator stands there."""
    return any(
        isinstance(side, ast.JoinedStr)
        or (isinstance(side, ast.Constant) and isinstance(side.value, str | type(None)))
        for side in (node.left, node.right)
    )


def _is_dataclass_option(parent: ast.AST) -> bool:
    return isinstance(parent, ast.keyword) and parent.arg in DATACLASS_OPTIONS


def _other_values(value: object) -> Iterator[str | float]:
    if isinstance(value, bool):
        yield not value
    elif isinstance(value, int | float):
        yield value + 1
    elif isinstance(value, str) and NUMBER.fullmatch(value):
        yield f"1{value}"
    elif isinstance(value, str) and WORD.fullmatch(value):
        yield f"{value}-other"


def _is_bare_condition(node: ast.expr, parent: ast.AST) -> bool:
    """Whether it decides a branch by itself; what compares, joins or negates has changes of its own.

    `TYPE_CHECKING` decides about types alone.
    """
    if isinstance(node, ast.Name) and node.id == "TYPE_CHECKING":
        return False
    if isinstance(
        node, (ast.Compare, ast.BoolOp, ast.Constant, ast.UnaryOp, ast.Dict, ast.List)
    ):
        return False
    match parent:
        case ast.If(test=test) | ast.While(test=test) | ast.IfExp(test=test):
            return test is node
        case ast.comprehension(ifs=ifs):
            return any(each is node for each in ifs)
        case ast.BoolOp():
            return True
    return False
