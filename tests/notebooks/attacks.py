"""What the tables of notebooks refuse, with an attack on each rule."""

from collections.abc import Callable, Mapping
from typing import Any

from notebooks.models import (
    Hub,
    HubAccount,
    IdleStop,
    NotebookServer,
    Profile,
    ProfileVersion,
    UnknownServer,
)
from tests import factories
from tests.scene import DAY, NOW


def profile(**fields: Any) -> Profile:
    """A profile past every action; a draft unless it is told otherwise."""
    return Profile.objects.create(**{"slug": "x1", "reason": "Old."} | fields)


def version(world: Any, number: int) -> ProfileVersion:
    """A version of the profile, not kept yet."""
    made, _ = Profile.objects.get_or_create(slug="x1")
    return ProfileVersion(
        profile=made, number=number, title="X", text="", by=world.scene.ada, at=NOW
    )


def followed_by_itself() -> None:
    """A deprecated profile that people are offered instead of itself."""
    made = profile(state="deprecated", published=1)
    Profile.objects.filter(pk=made.pk).update(successor=made)


def hub(world: Any, **fields: Any) -> Hub:
    """A hub of the scene's cluster, past every action."""
    usual = {
        "cluster": world.scene.flavor.cluster,
        "address": "https://hub.example.com",
        "token_file": "hub",
        "next_look_at": NOW,
    }
    return Hub.objects.create(**usual | fields)


def with_key(world: Any, **fields: Any) -> Hub:
    """A hub that has a key."""
    return hub(
        world, **{"key_prefix": "one", "key_digest": "x", "key_made_at": NOW} | fields
    )


def account(world: Any, **fields: Any) -> HubAccount:
    """Ada's account on the hub of the scene's cluster."""
    made = Hub.objects.first() or hub(world)
    usual = {
        "hub": made,
        "user": world.scene.ada,
        "username": "ada",
        "first_seen_at": NOW,
    }
    return HubAccount.objects.create(**usual | fields)


def unknown(world: Any, **fields: Any) -> UnknownServer:
    """A server of somebody whom the portal does not know, on the hub of the scene's cluster."""
    made = Hub.objects.first() or hub(world)
    return UnknownServer.objects.create(
        **{
            "hub": made,
            "username": "eve",
            "name": "x",
            "reason": "person",
            "since": NOW,
        }
        | fields
    )


def server(world: Any, **fields: Any) -> NotebookServer:
    """A server that starts, past every action."""
    made, _ = Profile.objects.get_or_create(slug="x1")
    usual = {
        "team": world.scene.team,
        "tenancy": world.scene.tenancy,
        "owner": world.scene.ada,
        "profile": made,
        "profile_version": 1,
        "username": "ada",
        "name": f"nb-{NotebookServer.objects.count()}",
        "title": "X",
        "gpus": 1,
        "usd_per_hour": 1,
        "created_at": NOW,
        "launched_at": NOW,
        "requeue_at": NOW,
    }
    return NotebookServer.objects.create(**usual | fields)


def idle_stop(world: Any, **fields: Any) -> IdleStop:
    """A notebook that was stopped because nobody used it."""
    usual = {"gpus": 1, "usd_per_hour": 1, "stopped_at": NOW, "until": NOW}
    return IdleStop.objects.create(
        cluster=world.scene.tenancy.cluster, **usual | fields
    )


NAMED: Mapping[str, Callable[[Any], object]] = {
    "a_profile_is_in_a_known_state": lambda w: profile(state="asleep"),
    "a_profile_is_offered_in_a_version": lambda w: profile(state="published"),
    "a_profile_is_deprecated_for_a_reason": lambda w: profile(
        state="deprecated", published=1, reason=""
    ),
    "only_a_profile_that_goes_has_a_successor": lambda w: profile(
        slug="x2", successor=profile()
    ),
    "no_profile_succeeds_itself": lambda w: followed_by_itself(),
    "one_profile_version_per_number": lambda w: ProfileVersion.objects.bulk_create(
        [version(w, 1), version(w, 1)]
    ),
    "a_profile_version_counts_from_one": lambda w: ProfileVersion.objects.bulk_create(
        [version(w, 0)]
    ),
    "a_hub_belongs_to_one_cluster": lambda w: (
        hub(w),
        hub(w, cluster=factories.cluster("second")),
    ),
    "a_hub_is_called_over_https": lambda w: hub(w, address="http://hub.example.com"),
    "a_hub_is_opened_by_browsers": lambda w: hub(
        w, public_address="ftp://hub.example.com"
    ),
    "a_hub_has_a_token": lambda w: hub(w, token_file=""),
    "a_hub_key_is_kept_whole": lambda w: hub(w, key_prefix="one", key_made_at=NOW),
    "a_hub_key_opens_one_hub": lambda w: (
        with_key(w),
        with_key(
            w, cluster=factories.cluster("second"), address="https://other.example.com"
        ),
    ),
    "an_idle_stop_frees_gpus": lambda w: idle_stop(w, gpus=0),
    "an_idle_stop_costs_nothing": lambda w: idle_stop(w, usd_per_hour=-1),
    "an_idle_stop_counts_from_its_moment": lambda w: idle_stop(w, until=NOW - DAY),
    "a_hub_reclaims_in_a_known_way": lambda w: hub(w, reclaim="soon"),
    "a_followed_hub_says_since_when": lambda w: hub(
        w, followed_since=NOW, followed_at=NOW - DAY
    ),
    "a_hub_is_away_for_a_reason": lambda w: hub(
        w, looked_at=NOW, reachable=False, failures=1
    ),
    "a_person_has_one_name_on_a_hub": lambda w: (
        account(w),
        account(w, username="ada-2"),
    ),
    "a_name_on_a_hub_is_of_one_person": lambda w: (
        account(w),
        account(w, user=w.scene.priya),
    ),
    "a_hub_account_has_a_name": lambda w: account(w, username=""),
    "an_unknown_server_is_kept_once": lambda w: (unknown(w), unknown(w)),
    "an_unknown_server_is_unknown_for_a_known_reason": lambda w: unknown(
        w, reason="mood"
    ),
    "a_parked_notebookserver_is_worked_on_by_nobody": lambda w: server(
        w, parked_at=NOW, lease_until=NOW
    ),
    "a_notebookserver_observes_what_was_wanted": lambda w: server(
        w, generation=1, observed_generation=2
    ),
    "one_notebook_per_name_at_a_hub": lambda w: (
        server(w, name="nb"),
        server(w, name="nb"),
    ),
    "a_notebook_is_in_a_known_state": lambda w: server(w, state="asleep"),
    "only_a_live_notebook_is_ready": lambda w: server(w, state="failed", ready_at=NOW),
    "a_ready_notebook_says_since_when": lambda w: server(w, state="ready"),
    "a_stopped_notebook_says_why": lambda w: server(w, state="stopped"),
    "a_person_who_stops_a_notebook_is_known": lambda w: server(w, stop_reason="person"),
    "a_measured_notebook_says_since_when": lambda w: server(w, gpu_measured_at=NOW),
    "an_exemption_says_who_gave_it_and_why": lambda w: server(w, exempt_until=NOW),
    "a_notebook_never_earns_money": lambda w: server(w, usd_per_hour=-1),
    "a_notebook_starts_after_it_was_made": lambda w: server(w, launched_at=NOW - DAY),
}
UNIQUE: Mapping[str, Callable[[Any], object]] = {
    "notebooks.Profile.slug": lambda w: [profile(), profile()],
}
ALSO: Mapping[str, Callable[[Any], object]] = {
    "a notebook whose earlier starts earned money": lambda w: server(w, spent_usd=-1),
    "a key of a hub without its prefix": lambda w: with_key(w, key_prefix=""),
    "a hub that was followed until a moment and nobody knows since when": lambda w: hub(
        w, followed_at=NOW
    ),
    "a hub that answered and was never looked at": lambda w: hub(w, reachable=True),
    "a hub that was looked at and nothing is known of it": lambda w: hub(
        w, looked_at=NOW
    ),
    "a version of a profile changed": lambda w: (
        ProfileVersion.objects.bulk_create([version(w, 1)]),
        ProfileVersion.objects.update(text="colour: red"),
    ),
    "somebody who stopped a notebook that the portal stopped": lambda w: server(
        w, state="stopped", stop_reason="idle", stopped_by=w.scene.ada
    ),
    "a notebook that is measured from a later moment on": lambda w: server(
        w, gpu_measured_at=NOW - DAY, gpu_measured_since=NOW
    ),
    "a failed notebook that is stopped once more": lambda w: (
        NotebookServer.objects.filter(pk=server(w, state="failed").pk).update(
            state="stopping", stop_reason="idle"
        )
    ),
    "a retired profile that comes back": lambda w: Profile.objects.filter(
        pk=profile(state="retired").pk
    ).update(state="draft"),
}
