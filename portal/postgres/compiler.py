"""Django's compilers for PostgreSQL, which write plain columns, most of every statement, in a shorter way."""

from functools import cache
from typing import Any

from django.db.backends.postgresql.compiler import SQLCompiler as DjangosCompiler
from django.db.backends.postgresql.compiler import SQLInsertCompiler
from django.db.models.expressions import Col
from django.db.models.sql.compiler import (
    SQLAggregateCompiler,
    SQLDeleteCompiler,
    SQLUpdateCompiler,
)

__all__ = [
    "SQLAggregateCompiler",
    "SQLCompiler",
    "SQLDeleteCompiler",
    "SQLInsertCompiler",
    "SQLUpdateCompiler",
]


@cache
def _quoted(column: str) -> str:
    """The name of one of our columns, which are few: no statement has one for another's alias."""
    return f'"{column}"'


class SQLCompiler(DjangosCompiler):
    """Gives the same SQL."""

    def compile(self, node: Any) -> tuple[str, Any]:
        """The SQL of an expression with its values. A statement selects up to 230 columns, so those take no detour."""
        if type(node) is not Col or not node.alias:
            return super().compile(node)
        table = self.quote_cache.get(node.alias) or self.quote_name_unless_alias(
            node.alias
        )
        return f"{table}.{_quoted(node.target.column)}", []

    def get_converters(self, expressions: Any) -> dict[int, Any]:
        """What makes a value of Python of a column's, by place; a field is not compared with itself for it."""
        found = {}
        for place, one in enumerate(expressions):
            if type(one) is not Col:
                return super().get_converters(expressions)
            of = one.target if one.target is one.output_field else one
            if converters := of.get_db_converters(self.connection):
                found[place] = (converters, one)
        return found

    def _order_by_pairs(self) -> Any:
        """What to order by.

        For each ordered statement Django hashes every column that it selects (24 on average), to find those that are
        ordered by as expressions or under another name. Plain fields are neither.
        """
        djangos: Any = super()
        if not self._is_ordered_by_plain_fields():
            return iter(djangos._order_by_pairs())
        select, self.select = self.select, None
        try:
            return iter([*djangos._order_by_pairs()])
        finally:
            self.select = select

    def _is_ordered_by_plain_fields(self) -> bool:
        query: Any = self.query
        if query.combinator or query.extra_order_by:
            return False
        meta, other_names = (
            query.get_meta(),
            {alias for _, _, alias in self.select or ()},
        )
        return all(
            isinstance(one, str) and one.lstrip("-") not in other_names
            for one in query.order_by or (meta and meta.ordering) or ()
        )
