"""Further kinds of notice: drift, ends, departures, requests taken back, work to carry out, places that are tried no more."""

from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("notices", "0001_notices_and_deliveries"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.RemoveConstraint(
            model_name="notice",
            name="a_notice_is_of_a_known_kind",
        ),
        migrations.RemoveConstraint(
            model_name="preference",
            name="a_preference_is_of_a_known_kind",
        ),
        migrations.AlterField(
            model_name="notice",
            name="kind",
            field=models.CharField(
                choices=[
                    ("request_waiting", "A request waits for your decision"),
                    ("request_decided", "Your request was decided"),
                    ("request_asked_back", "Somebody asks about your request"),
                    ("request_answered", "Your question was answered"),
                    ("request_commented", "Somebody commented on a request you take part in"),
                    ("request_reminder", "A decision of yours is late"),
                    ("request_escalated", "A request was passed on to you"),
                    ("request_lapsed", "Your request lapsed, because nobody decided in time"),
                    ("request_withdrawn", "A request that waited for you was taken back"),
                    ("request_offered_again", "What you asked for has become free"),
                    ("task_open", "Work waits for a platform lead to carry it out"),
                    ("task_late", "Work that a person carries out is late"),
                    ("task_assigned", "Work was assigned to you"),
                    ("task_done", "Work for your request was done"),
                    ("allocation_ending", "GPUs of your team end soon"),
                    ("work_stopped", "Work of your team runs on GPUs it no longer holds, or was stopped"),
                    ("ends_held_back", "Many GPUs would end at once, and wait for a person"),
                    ("budget_soft", "Your team's budget is nearly used up"),
                    ("policy_activated", "A new policy is in force"),
                    ("team_leaves", "Your team leaves a cluster, or is restored"),
                    ("drift_waiting", "A change on a cluster waits for your decision"),
                    ("cluster_braked", "Repairs on a cluster have stopped"),
                    ("tenancy_parked", "A team's place on a cluster is tried no more"),
                    ("test", "A test"),
                ],
                max_length=30,
            ),
        ),
        migrations.AlterField(
            model_name="preference",
            name="kind",
            field=models.CharField(
                choices=[
                    ("request_waiting", "A request waits for your decision"),
                    ("request_decided", "Your request was decided"),
                    ("request_asked_back", "Somebody asks about your request"),
                    ("request_answered", "Your question was answered"),
                    ("request_commented", "Somebody commented on a request you take part in"),
                    ("request_reminder", "A decision of yours is late"),
                    ("request_escalated", "A request was passed on to you"),
                    ("request_lapsed", "Your request lapsed, because nobody decided in time"),
                    ("request_withdrawn", "A request that waited for you was taken back"),
                    ("request_offered_again", "What you asked for has become free"),
                    ("task_open", "Work waits for a platform lead to carry it out"),
                    ("task_late", "Work that a person carries out is late"),
                    ("task_assigned", "Work was assigned to you"),
                    ("task_done", "Work for your request was done"),
                    ("allocation_ending", "GPUs of your team end soon"),
                    ("work_stopped", "Work of your team runs on GPUs it no longer holds, or was stopped"),
                    ("ends_held_back", "Many GPUs would end at once, and wait for a person"),
                    ("budget_soft", "Your team's budget is nearly used up"),
                    ("policy_activated", "A new policy is in force"),
                    ("team_leaves", "Your team leaves a cluster, or is restored"),
                    ("drift_waiting", "A change on a cluster waits for your decision"),
                    ("cluster_braked", "Repairs on a cluster have stopped"),
                    ("tenancy_parked", "A team's place on a cluster is tried no more"),
                    ("test", "A test"),
                ],
                max_length=30,
            ),
        ),
        migrations.AddConstraint(
            model_name="notice",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    (
                        "kind__in",
                        [
                            "request_waiting",
                            "request_decided",
                            "request_asked_back",
                            "request_answered",
                            "request_commented",
                            "request_reminder",
                            "request_escalated",
                            "request_lapsed",
                            "request_withdrawn",
                            "request_offered_again",
                            "task_open",
                            "task_late",
                            "task_assigned",
                            "task_done",
                            "allocation_ending",
                            "work_stopped",
                            "ends_held_back",
                            "budget_soft",
                            "policy_activated",
                            "team_leaves",
                            "drift_waiting",
                            "cluster_braked",
                            "tenancy_parked",
                            "test",
                        ],
                    )
                ),
                name="a_notice_is_of_a_known_kind",
            ),
        ),
        migrations.AddConstraint(
            model_name="preference",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    (
                        "kind__in",
                        [
                            "request_waiting",
                            "request_decided",
                            "request_asked_back",
                            "request_answered",
                            "request_commented",
                            "request_reminder",
                            "request_escalated",
                            "request_lapsed",
                            "request_withdrawn",
                            "request_offered_again",
                            "task_open",
                            "task_late",
                            "task_assigned",
                            "task_done",
                            "allocation_ending",
                            "work_stopped",
                            "ends_held_back",
                            "budget_soft",
                            "policy_activated",
                            "team_leaves",
                            "drift_waiting",
                            "cluster_braked",
                            "tenancy_parked",
                            "test",
                        ],
                    )
                ),
                name="a_preference_is_of_a_known_kind",
            ),
        ),
    ]
