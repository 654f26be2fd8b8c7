"""Requests lapse: one more kind of event. SQLite makes the table anew for it, which would lose the triggers."""

from django.db import migrations, models

from audit.append_only import append_only

GUARD = append_only("audit_event", words="audit events")


class Migration(migrations.Migration):
    dependencies = [
        ("audit", "0002_events_are_never_changed"),
    ]

    operations = [
        migrations.RunPython(GUARD.reverse_code, GUARD.code),
        migrations.RemoveConstraint(
            model_name="event",
            name="an_event_is_of_a_known_kind",
        ),
        migrations.AlterField(
            model_name="event",
            name="kind",
            field=models.CharField(
                choices=[
                    ("person.signed_in", "signed in"),
                    ("person.sign_in_refused", "was refused at sign-in"),
                    ("person.signed_out", "signed out"),
                    ("token.created", "created a token"),
                    ("token.revoked", "revoked a token"),
                    ("team.created", "created the team"),
                    ("team.members_synced", "took the members over from the directory"),
                    ("cluster.added", "added the cluster"),
                    ("cluster.changed", "changed the cluster"),
                    ("cluster.unreachable", "lost contact with the cluster"),
                    ("cluster.reachable", "is in contact with the cluster"),
                    ("flavor.added", "added the flavor"),
                    ("flavor.changed", "changed the flavor"),
                    ("budget.set", "set the budget"),
                    ("request.submitted", "asked"),
                    ("request.edited", "changed the request"),
                    ("request.approved", "approved"),
                    ("request.step_done", "approved their step"),
                    ("request.rejected", "rejected"),
                    ("request.asked_back", "asked a question"),
                    ("request.answered", "answered"),
                    ("request.withdrawn", "withdrew"),
                    ("request.lapsed", "let a request lapse that nobody decided in time"),
                    ("allocation.issued", "granted GPUs"),
                    ("allocation.returned", "gave GPUs back"),
                    ("allocation.expired", "ended what had reached its date"),
                    ("tenancy.changed", "changed what should be on the cluster"),
                    ("tenancy.converged", "made everything true on the cluster"),
                    ("tenancy.failed", "could not make it true"),
                    ("tenancy.drift_repaired", "repaired what had changed"),
                    ("refused", "was refused"),
                ],
                max_length=60,
            ),
        ),
        migrations.AddConstraint(
            model_name="event",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    (
                        "kind__in",
                        [
                            "person.signed_in",
                            "person.sign_in_refused",
                            "person.signed_out",
                            "token.created",
                            "token.revoked",
                            "team.created",
                            "team.members_synced",
                            "cluster.added",
                            "cluster.changed",
                            "cluster.unreachable",
                            "cluster.reachable",
                            "flavor.added",
                            "flavor.changed",
                            "budget.set",
                            "request.submitted",
                            "request.edited",
                            "request.approved",
                            "request.step_done",
                            "request.rejected",
                            "request.asked_back",
                            "request.answered",
                            "request.withdrawn",
                            "request.lapsed",
                            "allocation.issued",
                            "allocation.returned",
                            "allocation.expired",
                            "tenancy.changed",
                            "tenancy.converged",
                            "tenancy.failed",
                            "tenancy.drift_repaired",
                            "refused",
                        ],
                    )
                ),
                name="an_event_is_of_a_known_kind",
            ),
        ),
        GUARD,
    ]
