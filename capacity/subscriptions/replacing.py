"""What was read of Azure over what was known before."""

from datetime import datetime
from typing import Any

from django.db import transaction
from django.db.models import Q


@transaction.atomic
def replace(model: Any, rows: list[Any], *, now: datetime, **of: Any) -> None:
    """Write what was read over what was known, and forget what was not there any more."""
    unique = next(
        one.fields for one in model._meta.constraints if hasattr(one, "fields")
    )
    fields = [
        one.name
        for one in model._meta.concrete_fields
        if not one.primary_key and one.name not in unique
    ]
    model.objects.bulk_create(
        rows, update_conflicts=True, update_fields=fields, unique_fields=unique
    )
    model.objects.filter(Q(seen_at__lt=now), **of).delete()
