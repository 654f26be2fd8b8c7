"""A CHECK that comes out unknown passes: the number must be said to be there."""

from django.db import migrations, models
from django.db.models import Q


class Migration(migrations.Migration):
    dependencies = [("approvals", "0002_first_policy")]

    operations = [
        migrations.RemoveConstraint(model_name="decision", name="an_approving_vote_says_how_many"),
        migrations.AddConstraint(
            model_name="decision",
            constraint=models.CheckConstraint(
                condition=~Q(verdict="approve") | Q(gpus__isnull=False, gpus__gte=1),
                name="an_approving_vote_says_how_many",
            ),
        ),
    ]
