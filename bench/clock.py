"""The portal's clock for passes that end before their cluster is called: it has nobody look at the clusters.

A look would find that they do not answer, and of such a cluster one tenancy is worked on at a time.
"""

from portal.celery import app

__all__ = ["app"]

app.conf.beat_schedule = {
    name: entry
    for name, entry in app.conf.beat_schedule.items()
    if name != "look at clusters"
}
