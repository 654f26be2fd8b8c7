"""The SQL is Django's own, whatever is selected and ordered by."""

from collections.abc import Callable
from typing import Any

import pytest
from django.apps import apps
from django.db import connection
from django.db.backends.postgresql.compiler import SQLCompiler as DjangosCompiler
from django.db.models import Count, Exists, F, OuterRef, QuerySet
from django.db.models.expressions import Col
from django.db.models.functions import Lower

from approvals.models import Request
from fleet.models import Cluster
from portal.postgres.compiler import SQLCompiler

Rows = QuerySet[Any]


def compiled(by: type[DjangosCompiler], rows: Rows) -> tuple[str, Any]:
    """The statement with its values."""
    statement: tuple[str, Any] = by(rows.query.clone(), connection, "default").as_sql()
    return statement


@pytest.mark.parametrize(
    "order",
    [
        Cluster.objects.all,
        lambda: Request.objects.select_related(
            "requester", "team__created_by", "tenancy__team__created_by"
        ),
        lambda: Request.objects.filter(
            team__created_by=1, requester__roles_held__role="auditor"
        ),
        lambda: Cluster.objects.filter(
            Exists(Request.objects.filter(tenancy__cluster=OuterRef("pk")))
        ),
        lambda: Cluster.objects.extra(select={"one": "1"}, order_by=["one"]),
        lambda: Cluster.objects.order_by("name", "-pk"),
        lambda: Cluster.objects.order_by("name").reverse()[:3],
        lambda: Cluster.objects.order_by("?"),
        lambda: Request.objects.select_related("requester", "tenancy__team").order_by(
            "tenancy__team__name"
        ),
        lambda: Request.objects.select_related("tenancy__cluster").order_by("tenancy"),
        lambda: Request.objects.order_by("created_at", "pk").only("pk"),
        lambda: Cluster.objects.values_list("pk").order_by("pk"),
        lambda: Cluster.objects.values("name").order_by("name").distinct(),
        lambda: Cluster.objects.values(title_of=F("name")).order_by("title_of"),
        lambda: Cluster.objects.annotate(size=Count("flavors")).order_by(
            "size", "name"
        ),
        lambda: Cluster.objects.annotate(size=Count("flavors")).order_by("-size"),
        lambda: Cluster.objects.annotate(size=Count("flavors")).order_by("name"),
        lambda: Cluster.objects.alias(size=Count("flavors")).order_by("size"),
        lambda: Cluster.objects.order_by(Lower("name").desc()),
        lambda: Cluster.objects.order_by(F("name").desc(nulls_last=True)),
        lambda: (
            Cluster.objects.filter(pk=1)
            .union(Cluster.objects.filter(pk=2))
            .order_by("name")
        ),
        lambda: Request.objects.filter(
            pk__in=Request.objects.order_by("pk").values("pk")[:5]
        ).order_by("pk"),
    ],
)
def test_the_statement_is_the_one_that_django_would_send(
    order: Callable[[], Rows],
) -> None:
    assert compiled(SQLCompiler, order()) == compiled(DjangosCompiler, order())


def test_of_every_table_too() -> None:
    for model in apps.get_models():
        related = [
            field.name
            for field in model._meta.concrete_fields
            if field.many_to_one or field.one_to_one
        ]
        for rows in (
            model._default_manager.all(),
            model._default_manager.select_related(*related),
        ):
            assert compiled(SQLCompiler, rows) == compiled(DjangosCompiler, rows)


@pytest.mark.parametrize(
    "rows",
    [
        Request.objects.select_related("tenancy__team"),
        Cluster.objects.annotate(of=Count("flavors")),
    ],
)
def test_values_are_converted_as_django_would(rows: Rows) -> None:
    made = SQLCompiler(rows.query.clone(), connection, "default")
    made.as_sql()
    columns = [expression for expression, _, _ in made.select or ()]
    assert (
        made.get_converters(columns)
        == DjangosCompiler.get_converters(made, columns)
        != {}
    )


def test_rows_in_the_order_of_plain_fields_hash_no_column(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(self: Col) -> int:
        raise AssertionError(f"{self} is hashed")

    monkeypatch.setattr(Col, "__hash__", refuse)
    assert (
        "ORDER BY" in compiled(SQLCompiler, Cluster.objects.order_by("name", "-pk"))[0]
    )
