"""Rows of the database as objects, without what Django asks of each field of each of them."""

from collections.abc import Collection
from typing import Any, Self

from django.db import models
from django.db.models.base import ModelState


class Row(models.Model):
    """A model whose rows are read in hundreds: what the database gave is what the object has.

    Django's `__init__` goes through all fields of each row, looks for their defaults and sends two signals; a page of
    the list of requests is some 400 objects, and that was a quarter of its time. Fields that are not read stay
    unread, as there. No field of such a model may have a descriptor that changes what it is set to, as files have.
    """

    class Meta:
        abstract = True

    @classmethod
    def from_db(  # type: ignore[override]  # the stubs are of a later Django, which passes one thing more
        cls, db: str | None, field_names: Collection[str], values: Collection[Any]
    ) -> Self:
        """An object of a row that is read."""
        new = cls.__new__(cls)
        new._state = ModelState()
        new._state.adding = False
        new._state.db = db
        new.__dict__.update(zip(field_names, values, strict=True))
        return new
