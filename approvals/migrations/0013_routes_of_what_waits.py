"""What waits goes the route of the policy that answered it first."""

from typing import Any

from django.db import migrations
from django.db.models import OuterRef, Subquery


def routed_by_what_was_told(apps: Any, schema_editor: Any) -> None:
    """What waits goes the route of the policy that answered first."""
    answers = apps.get_model("approvals", "Evaluation").objects.filter(
        request=OuterRef("pk"), content_version=OuterRef("content_version")
    )
    waiting = apps.get_model("approvals", "Request").objects.filter(state="waiting")
    waiting.update(routed_by=Subquery(answers.order_by("id").values("policy")[:1]))


class Migration(migrations.Migration):
    dependencies = [("approvals", "0012_what_waits_is_routed_again")]

    operations = [migrations.RunPython(routed_by_what_was_told, migrations.RunPython.noop)]
