"""Stand-ins that were named before they were asked count as accepted."""

from typing import Any

from django.db import migrations
from django.db.models import F


def accept(apps: Any, schema_editor: Any) -> None:
    """They have counted since they were named."""
    apps.get_model("accounts", "Delegation").objects.update(accepted_at=F("created_at"))


class Migration(migrations.Migration):
    dependencies = [("accounts", "0009_stand_ins_accept")]

    operations = [migrations.RunPython(accept, migrations.RunPython.noop)]
