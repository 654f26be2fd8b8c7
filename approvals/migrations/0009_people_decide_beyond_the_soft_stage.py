"""People decide beyond the soft stage of a budget, as every page says: also where the first policy was never changed.

A policy is never changed, so an installation that still runs the first one gets a second. One that two people have put
in force stays as they meant it.
"""

from django.db import migrations, models
from django.db.models import F, Q
from django.utils import timezone

from audit.append_only import append_only

WHY = "People decide what goes beyond the soft stage of a budget, as the pages say."
NAME = "two_people_put_a_policy_in_force"
TWO_PEOPLE = Q(proposed_by__isnull=False, activated_by__isnull=False) & ~Q(proposed_by=F("activated_by"))
SHIPPED = Q(shipped=True, proposed_by=None, activated_by=None)
GUARD = append_only("approvals_policyversion", words="policies")


def successor_of(number, document):
    """The document that follows on a policy as it was shipped; None for one that people chose."""
    thresholds = document["thresholds"]
    if number != 1 or not thresholds.get("automatic_beyond_soft_budget"):
        return None
    return {**document, "thresholds": {**thresholds, "automatic_beyond_soft_budget": False}}


def follow(apps, schema_editor):
    versions = apps.get_model("approvals", "PolicyVersion").objects
    newest = versions.order_by("-number").first()
    document = successor_of(newest.number, newest.document)
    if document is not None:
        versions.create(number=2, document=document, active_from=timezone.now(), why=WHY, shipped=True)


class Migration(migrations.Migration):
    dependencies = [("approvals", "0008_what_would_make_it_automatic")]

    operations = [
        # SQLite writes the table anew for a constraint, and its triggers would be lost.
        migrations.RunPython(GUARD.reverse_code, GUARD.code),
        migrations.AddField("policyversion", "shipped", models.BooleanField(default=False, db_default=False)),
        migrations.RemoveConstraint("policyversion", NAME),
        migrations.AddConstraint(
            "policyversion", models.CheckConstraint(condition=Q(number=1) | SHIPPED | TWO_PEOPLE, name=NAME)
        ),
        GUARD,
        migrations.RunPython(follow, migrations.RunPython.noop),
    ]
