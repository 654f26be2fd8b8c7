"""The policy every installation starts with; its numbers are those of approvals.document."""

from datetime import UTC, datetime

from django.db import migrations

FIRST = {
    "thresholds": {
        "automatic_gpus": 2,
        "automatic_gpu_hours": 700,
        "automatic_usd": "1500",
        "automatic_days": 14,
        "longest_days": 90,
        "window_days": 7,
        "window_gpus_team": 6,
        "window_gpus_person": 6,
        "automatic_environments": ["dev", "test"],
        "automatic_beyond_soft_budget": False,
        "least_use_percent": 50,
        "automatic_when_unmeasured": True,
        "keep_free_gpus": 0,
        "reversible_minutes": 10,
    },
    "overrides": [
        {
            "where": {
                "offerings": ["endpoint", "cluster", "reservation"],
                "environments": [],
                "flavors": [],
                "tiers": [],
            },
            "set": {"longest_days": 365},
        }
    ],
    "routes": [
        {
            "name": "large",
            "where": {"offerings": [], "environments": [], "flavors": [], "tiers": []},
            "gpus_from": 8,
            "usd_from": "25000",
            "steps": [
                {
                    "by": "platform_leads",
                    "name": "",
                    "level": 1,
                    "quorum": 1,
                    "target_hours": 24,
                    "remind_hours": 8,
                    "escalate_hours": 48,
                    "escalate_to": "engineering_leadership",
                },
                {
                    "by": "engineering_leadership",
                    "name": "",
                    "level": 1,
                    "quorum": 1,
                    "target_hours": 48,
                    "remind_hours": 24,
                    "escalate_hours": 96,
                    "escalate_to": "engineering_leadership",
                },
            ],
        },
        {
            "name": "ordinary",
            "where": {"offerings": [], "environments": [], "flavors": [], "tiers": []},
            "gpus_from": None,
            "usd_from": None,
            "steps": [
                {
                    "by": "platform_leads",
                    "name": "",
                    "level": 1,
                    "quorum": 1,
                    "target_hours": 24,
                    "remind_hours": 8,
                    "escalate_hours": 48,
                    "escalate_to": "engineering_leadership",
                }
            ],
        },
    ],
    "lapse_days": 14,
}


def add(apps, schema_editor):
    apps.get_model("approvals", "PolicyVersion").objects.create(
        number=1,
        document=FIRST,
        active_from=datetime(2026, 1, 1, tzinfo=UTC),
        why="The policy to start with.",
    )


def remove(apps, schema_editor):
    apps.get_model("approvals", "PolicyVersion").objects.filter(number=1).delete()


class Migration(migrations.Migration):
    dependencies = [("approvals", "0001_requests_and_decisions")]

    operations = [migrations.RunPython(add, remove)]
