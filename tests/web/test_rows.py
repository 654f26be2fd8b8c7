"""Rows that are read without Django's own way of making an object are what they would be by it."""

import inspect
from datetime import date
from typing import Any

import pytest
from django.apps import apps
from django.db import connection, models
from django.db.models.fields.related_descriptors import ForeignKeyDeferredAttribute
from django.db.models.query_utils import DeferredAttribute
from django.test.utils import CaptureQueriesContext

from approvals.models import Request
from tests import factories
from tests.scene import scene
from web.rows import Row

KINDS = [model for model in apps.get_models() if issubclass(model, Row)]


@pytest.fixture
def _request(db: None) -> None:
    """A request that was granted, and with it rows of many models."""
    made = scene()
    made.ask(2)
    factories.run(made.tenancy, made.ada)
    level = factories.service_level(made.tenancy, made.ada)
    level.days.create(day=date(2026, 11, 30), requests=10, failed=1)


def plainly(model: type[models.Model], row: models.Model) -> dict[str, Any]:
    """What Django's own way makes of the same values."""
    names = [field.attname for field in model._meta.concrete_fields]
    made: Any = models.Model.from_db.__func__(  # type: ignore[attr-defined]
        model, "default", names, [vars(row)[name] for name in names]
    )
    return {name: value for name, value in vars(made).items() if name != "_state"}


@pytest.mark.usefixtures("_request")
def test_a_row_has_what_django_gives_it() -> None:
    seen = 0
    for model in KINDS:
        for row in model._default_manager.all():
            seen += 1
            assert {
                name: value for name, value in vars(row).items() if name != "_state"
            } == plainly(model, row)
            assert (row._state.adding, row._state.db) == (False, "default")
    assert seen >= len(KINDS) // 2


@pytest.mark.usefixtures("_request")
def test_a_field_that_was_not_read_is_read_when_it_is_looked_at() -> None:
    row = Request.objects.only("state").get()
    assert "reason" in row.get_deferred_fields()
    with CaptureQueriesContext(connection) as asked:
        assert row.reason == Request.objects.values_list("reason", flat=True).get()
    assert len(asked) == 2


@pytest.mark.usefixtures("_request")
def test_a_row_is_changed_saved_and_read_again() -> None:
    row = Request.objects.select_related("team").get()
    row.team.name = "Another"
    row.team.save()
    row.team.refresh_from_db()
    assert (row.team.name, row.team_id) == ("Another", row.team.pk)


@pytest.mark.parametrize("model", KINDS, ids=lambda model: model.__name__)
def test_no_field_changes_what_it_is_set_to(model: type[models.Model]) -> None:
    fields = model._meta.concrete_fields
    kinds = {type(inspect.getattr_static(model, field.attname)) for field in fields}
    assert kinds <= {DeferredAttribute, ForeignKeyDeferredAttribute}
