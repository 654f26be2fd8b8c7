"""Decisions, evaluations and policies are only added to."""

from django.db import migrations

from audit.append_only import append_only


class Migration(migrations.Migration):
    dependencies = [("approvals", "0003_an_approving_vote_is_never_without_a_number")]

    operations = [
        append_only("approvals_decision", words="decisions"),
        append_only("approvals_evaluation", words="evaluations"),
        append_only("approvals_policyversion", words="policies"),
    ]
