"""Decisions, evaluations, revisions, comments and policies are only added to."""

from django.db import migrations

from audit.append_only import append_only


class Migration(migrations.Migration):
    dependencies = [("approvals", "0002_first_policy")]

    operations = [
        append_only("approvals_decision", words="decisions"),
        append_only("approvals_evaluation", words="evaluations"),
        append_only("approvals_revision", words="versions"),
        append_only("approvals_comment", words="comments"),
        append_only("approvals_policyversion", words="policies"),
    ]
