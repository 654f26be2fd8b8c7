"""Every kind of event there is, with the words people read."""

from django.db import models


class Kind(models.TextChoices):
    """What happened; the value is stored for ever, the label may be reworded."""

    SIGNED_IN = "person.signed_in", "signed in"
    SIGN_IN_REFUSED = "person.sign_in_refused", "was refused at sign-in"
    SIGNED_OUT = "person.signed_out", "signed out"
    TOKEN_CREATED = "token.created", "created a token"
    TOKEN_REVOKED = "token.revoked", "revoked a token"
    IDENTITY_ADDED = "identity.added", "let an application act for the team"
    IDENTITY_REMOVED = (
        "identity.removed",
        "lets an application act for the team no more",
    )
    SEAT_FILLED = "person.seat_filled", "took over from the directory whose seat it is"
    TOKEN_SUSPENDED = "token.suspended", "suspended a token"
    ACCESS_RESTORED = "person.access_restored", "gave back what the directory had taken"
    DIRECTORY_BRAKED = (
        "directory.braked",
        "stopped believing the directory until a person looks",
    )
    DIRECTORY_RELEASED = "directory.released", "let take effect what the directory says"
    DIRECTORY_PASSED = "directory.passed", "believes the directory again"
    TEAM_CREATED = "team.created", "created the team"
    TEAM_CHANGED = "team.changed", "changed the team"
    MEMBERS_SYNCED = "team.members_synced", "took the members over from the directory"
    MEMBERS_CHANGED = "team.members_changed", "changed who is in the team, or leads it"
    TIER_SET = "team.tier_set", "set the team's tier"
    DELEGATED = "delegation.created", "named a stand-in"
    DELEGATION_ACCEPTED = "delegation.accepted", "accepted to stand in"
    DELEGATION_DECLINED = "delegation.declined", "declined to stand in"
    DELEGATION_ENDED = "delegation.ended", "ended a stand-in's time"
    CLUSTER_ADDED = "cluster.added", "added the cluster"
    CLUSTER_CHANGED = "cluster.changed", "changed the cluster"
    CLUSTER_REMOVED = "cluster.removed", "removed the cluster"
    CLUSTER_WRITTEN_OFF = "cluster.written_off", "wrote the cluster off"
    CLUSTER_UNREACHABLE = "cluster.unreachable", "lost contact with the cluster"
    CLUSTER_REACHABLE = "cluster.reachable", "is in contact with the cluster"
    FLAVOR_ADDED = "flavor.added", "added the flavor"
    FLAVOR_CHANGED = "flavor.changed", "changed the flavor"
    FLAVOR_REMOVED = "flavor.removed", "removed the flavor"
    NOTICES_CHOSEN = "notices.chosen", "chose what to be told"
    NOTICE_TESTED = "notice.tested", "sent a test"
    NOTICE_SENT_AGAIN = "notice.sent_again", "sent a notice again"
    CHANNEL_ADDED = "channel.added", "added the channel"
    CHANNEL_CHANGED = "channel.changed", "changed the channel"
    CHANNEL_REMOVED = "channel.removed", "removed the channel"
    CHANNEL_SECRET_ROTATED = (
        "channel.secret_rotated",
        "made a new secret for the webhook",
    )
    CHANNEL_SWITCHED_OFF = "channel.switched_off", "switched off the webhook"
    COST_CENTRE_CONFIRMED = "cost_centre.confirmed", "confirmed the cost centre"
    COST_CENTRE_WITHDRAWN = (
        "cost_centre.withdrawn",
        "took the confirmation of the cost centre back",
    )
    COST_CENTRE_OWNED = "cost_centre.owned", "named who answers for the cost centre"
    BUDGET_SET = "budget.set", "set the budget"
    BUDGET_SOFT_REACHED = "budget.soft_reached", "saw a budget come close to its limit"
    REQUEST_SUBMITTED = "request.submitted", "asked"
    REQUEST_EDITED = "request.edited", "changed the request"
    REQUEST_APPROVED = "request.approved", "approved"
    REQUEST_STEP_DONE = "request.step_done", "approved their step"
    REQUEST_REJECTED = "request.rejected", "rejected"
    REQUEST_ASKED_BACK = "request.asked_back", "asked a question"
    REQUEST_ANSWERED = "request.answered", "answered"
    REQUEST_WITHDRAWN = "request.withdrawn", "withdrew"
    REQUEST_LAPSED = "request.lapsed", "let a request lapse that nobody decided in time"
    REQUEST_REMINDED = "request.reminded", "reminded who decides"
    REQUEST_ESCALATED = "request.escalated", "passed the request on to the next level"
    REQUEST_COMMENTED = "request.commented", "said something about the request"
    REQUEST_OFFERED_AGAIN = (
        "request.offered_again",
        "offered again what has become free",
    )
    REQUEST_REROUTED = "request.rerouted", "has other people decide the request"
    REQUEST_NOT_ALLOWED = (
        "request.not_allowed",
        "lets nobody approve the request as it stands",
    )
    TASK_ASSIGNED = "task.assigned", "gave the task to somebody"
    TASK_DONE = "task.done", "carried the task out"
    TASK_FAILED = "task.failed", "could not carry the task out"
    POLICY_DRAFTED = "policy.drafted", "wrote a draft of the policy"
    POLICY_DISCARDED = "policy.discarded", "threw a draft of the policy away"
    POLICY_HANDED_IN = (
        "policy.handed_in",
        "asked others to put the draft of the policy in force",
    )
    POLICY_ACTIVATED = "policy.activated", "put the policy in force"
    POLICY_SCHEDULED = "policy.scheduled", "set from when a policy is in force"
    POLICY_CANCELLED = "policy.cancelled", "cancelled the policy that was to come"
    OFFERING_CHANGED = "offering.changed", "changed how something is offered"
    ALLOCATION_ISSUED = "allocation.issued", "granted an allocation"
    ALLOCATION_BOOKED = "allocation.booked", "granted an allocation that begins later"
    ALLOCATION_BEGUN = "allocation.begun", "began what was booked"
    ALLOCATION_RETURNED = "allocation.returned", "gave an allocation back"
    ALLOCATION_READY = "allocation.ready", "saw that an allocation is there"
    ALLOCATION_FAILED = "allocation.failed", "ended what could not be made"
    ALLOCATION_EXPIRED = "allocation.expired", "ended what had reached its date"
    ALLOCATION_RENEWED = "allocation.renewed", "let an allocation go on under a renewal"
    ALLOCATION_REMINDED = "allocation.reminded", "reminded the team of an end"
    ALLOCATION_IDLE = "allocation.idle", "told the team that its GPUs are idle"
    WORK_LEFT = "work.left", "saw work run on GPUs that are no longer held"
    WORK_STOPPED = "work.stopped", "stopped work on GPUs that are no longer held"
    WORK_SETTLED = "work.settled", "saw nothing run beyond what is held"
    EXPIRY_BRAKED = "expiry.braked", "held many ends back until a person looks"
    EXPIRY_CONFIRMED = "expiry.confirmed", "let the ends that were held back come"
    EXPIRY_DISMISSED = "expiry.dismissed", "kept what was held back from ending"
    TENANCY_CHANGED = "tenancy.changed", "changed what should be on the cluster"
    TENANCY_CONVERGED = "tenancy.converged", "made everything true on the cluster"
    TENANCY_COMMITTED = "tenancy.committed", "committed it to the repository"
    TENANCY_FAILED = "tenancy.failed", "could not make it true"
    TENANCY_PARKED = "tenancy.parked", "gave up making it true"
    TENANCY_TRIED_AGAIN = "tenancy.tried_again", "had it tried again"
    TENANCY_PROTECTED = "tenancy.protected", "protected the team's place from deletion"
    TENANCY_UNPROTECTED = "tenancy.unprotected", "took the protection from deletion off"
    TENANCY_LEAVING = (
        "tenancy.leaving",
        "set the date on which the team leaves the cluster",
    )
    TENANCY_DRAINED = "tenancy.drained", "stopped what ran and took access away"
    TENANCY_RESTORED = "tenancy.restored", "put the team's place back"
    TENANCY_REMOVING = "tenancy.removing", "began to delete the team's place"
    TENANCY_GONE = "tenancy.gone", "deleted the team's place"
    DEPARTURE_ASKED = "departure.asked", "asked for the team to leave"
    DEPARTURE_WITHDRAWN = "departure.withdrawn", "took back that the team leaves"
    DEPARTURE_CONFIRMED = "departure.confirmed", "confirmed that the team leaves"
    DEPARTURE_RESTORED = "departure.restored", "restored the team"
    DEPARTURE_DONE = "departure.done", "finished the team's leaving"
    DEPARTURE_BRAKED = (
        "departure.braked",
        "stopped deleting, because too many teams would go at once",
    )
    DRIFT_REPAIRED = "tenancy.drift_repaired", "repaired what had changed"
    DRIFT_FOUND = "drift.found", "found a change from elsewhere"
    DRIFT_GONE = "drift.gone", "saw a change from elsewhere undone"
    DRIFT_CONTESTED = "drift.contested", "stopped fighting over an object"
    DRIFT_REPAIR_ASKED = "drift.repair_asked", "had a change from elsewhere put right"
    DRIFT_ADOPTED = "drift.adopted", "took a change from elsewhere over"
    DRIFT_GIVEN_UP = "drift.given_up", "gave up what was taken over"
    DRIFT_IGNORED = "drift.ignored", "left a change from elsewhere alone"
    CLUSTER_BRAKED = "cluster.braked", "stopped repairing a cluster"
    CLUSTER_RELEASED = "cluster.released", "let the repairs of a cluster go on"
    RUN_SUBMITTED = "run.submitted", "submitted a run"
    RUN_STARTED = "run.started", "saw the run start"
    RUN_STOPPED = "run.stopped", "asked for the run to stop"
    RUN_LIMIT_CHANGED = "run.limit_changed", "changed the run's time limit"
    WORK_DELETED = "work.deleted", "asked the cluster to delete work"
    RUN_ENDED = "run.ended", "saw the run end"
    SERVICE_LEVEL_SET = "service_level.set", "said what a service promises"
    SERVICE_LEVEL_REMOVED = (
        "service_level.removed",
        "has a service measured no more",
    )
    RUN_PARKED = "run.parked", "gave up sending, stopping or limiting the run"
    TEMPLATE_KEPT = "template.kept", "kept a version of a template of runs"
    TEMPLATE_TAKEN_BACK = "template.taken_back", "took a template of runs back"
    NOTEBOOK_LAUNCHED = "notebook.launched", "launched a notebook"
    NOTEBOOK_READY = "notebook.ready", "saw the notebook come up"
    NOTEBOOK_TAKEN_IN = (
        "notebook.taken_in",
        "found a notebook that was started in the hub",
    )
    NOTEBOOK_FAILED = "notebook.failed", "saw the notebook fail to start"
    NOTEBOOK_IDLE = "notebook.idle", "told its owner that the notebook is idle"
    NOTEBOOK_KEPT = "notebook.kept", "kept the notebook though it was idle"
    NOTEBOOK_EXEMPTED = "notebook.exempted", "exempted the notebook from idle stops"
    NOTEBOOK_EXEMPTION_ENDED = (
        "notebook.exemption_ended",
        "ended the exemption of the notebook from idle stops",
    )
    NOTEBOOK_STOPPED = "notebook.stopped", "asked for the notebook to stop"
    NOTEBOOK_ENDED = "notebook.ended", "saw the notebook stop"
    NOTEBOOK_REMOVED = "notebook.removed", "removed the notebook from the list"
    NOTEBOOK_PARKED = "notebook.parked", "gave up starting or stopping the notebook"
    PROFILE_SAVED = "profile.saved", "saved a version of a notebook profile"
    PROFILE_PUBLISHED = "profile.published", "published a notebook profile"
    PROFILE_DEPRECATED = "profile.deprecated", "deprecated a notebook profile"
    PROFILE_RETIRED = "profile.retired", "retired a notebook profile"
    SUBSCRIPTION_REACHABLE = "subscription.reachable", "reads the Azure subscription"
    SUBSCRIPTION_UNREACHABLE = (
        "subscription.unreachable",
        "cannot read the Azure subscription",
    )
    SUBSCRIPTION_CHECK_ASKED = (
        "subscription.check_asked",
        "asked for the Azure subscription to be read again",
    )
    SUBSCRIPTION_RIGHTS_CHANGED = (
        "subscription.rights_changed",
        "saw the portal's rights in Azure change",
    )
    PRICES_CHANGED = "prices.changed", "saw Azure's list prices change"
    PRICES_DOUBTED = "prices.doubted", "did not believe Azure's list prices"
    PRICES_CONFIRMED = "prices.confirmed", "confirmed Azure's list prices of a machine"
    LIMIT_NEAR = "limit.near", "saw a limit come near"
    QUOTA_INCREASE_ASKED = "quota_increase.asked", "asked for more Azure quota"
    QUOTA_INCREASE_SENT = "quota_increase.sent", "sent Azure a request for more quota"
    QUOTA_INCREASE_GRANTED = "quota_increase.granted", "saw Azure grant more quota"
    QUOTA_INCREASE_REFUSED = "quota_increase.refused", "saw Azure refuse more quota"
    QUOTA_INCREASE_FAILED = (
        "quota_increase.failed",
        "could not ask Azure for more quota",
    )
    QUOTA_INCREASE_WITHDRAWN = (
        "quota_increase.withdrawn",
        "withdrew a request for more Azure quota",
    )
    RESERVATION_CHANGED = (
        "reservation.changed",
        "changed how much capacity is reserved in Azure",
    )
    RESERVATION_READY = "reservation.ready", "saw capacity reserved in Azure"
    RESERVATION_REFUSED = "reservation.refused", "was refused capacity by Azure"
    RESERVATION_RELEASED = (
        "reservation.released",
        "asked Azure to release reserved capacity",
    )
    RESERVATION_GONE = "reservation.gone", "saw reserved capacity released"
    RESERVATION_PARKED = "reservation.parked", "gave up reserving or releasing capacity"
    MODEL_ENDPOINT_CHANGED = (
        "model_endpoint.changed",
        "changed the capacity of a model in Azure OpenAI",
    )
    MODEL_ENDPOINT_READY = "model_endpoint.ready", "saw a model ready in Azure OpenAI"
    MODEL_ENDPOINT_REFUSED = (
        "model_endpoint.refused",
        "was refused a model by Azure OpenAI",
    )
    MODEL_ENDPOINT_RELEASED = (
        "model_endpoint.released",
        "asked for a model in Azure OpenAI to be deleted",
    )
    MODEL_ENDPOINT_GONE = "model_endpoint.gone", "saw a model in Azure OpenAI deleted"
    MODEL_ACCOUNT_PARKED = (
        "model_account.parked",
        "gave up making or deleting an account of Azure OpenAI",
    )
    MODEL_ACCOUNT_TRIED_AGAIN = (
        "model_account.tried_again",
        "had an account of Azure OpenAI tried again",
    )
    REGISTRY_GRANTED = (
        "registry.granted",
        "gave the team’s group access to the registry",
    )
    REGISTRY_WITHDRAWN = (
        "registry.withdrawn",
        "took access to the registry from the team’s group",
    )
    REGISTRY_PARKED = (
        "registry.parked",
        "gave up giving or taking access to the registry",
    )
    REGISTRY_TRIED_AGAIN = (
        "registry.tried_again",
        "had access to the registry tried again",
    )
    RESERVATION_TRIED_AGAIN = (
        "reservation.tried_again",
        "had reserving or releasing capacity tried again",
    )
    RESERVATION_ORPHANED = (
        "reservation.orphaned",
        "found an orphaned reservation in Azure",
    )
    ORPHAN_RELEASE_ASKED = (
        "orphan.release_asked",
        "asked for an orphaned reservation to be released",
    )
    ORPHAN_KEPT = "orphan.kept", "left an orphaned reservation alone"
    ORPHAN_RELEASED = "orphan.released", "released an orphaned reservation"
    ORPHAN_PARKED = "orphan.parked", "gave up releasing an orphaned reservation"
    HUB_CONNECTED = "hub.connected", "connected the JupyterHub of a cluster"
    HUB_CHANGED = "hub.changed", "changed how a JupyterHub is connected"
    HUB_KEY_MADE = "hub.key_made", "made a new key for a JupyterHub"
    HUB_DISCONNECTED = "hub.disconnected", "disconnected the JupyterHub of a cluster"
    HUB_REACHABLE = "hub.reachable", "is in contact with the JupyterHub"
    HUB_UNREACHABLE = "hub.unreachable", "lost contact with the JupyterHub"
    HUB_NAMED_PERSON = (
        "hub.named_person",
        "learnt by which name a JupyterHub knows a person",
    )
    INVARIANTS_BROKEN = "invariants.broken", "found promises that do not hold"
    AUDIT_EXPORTED = "audit.exported", "exported events of the audit log"
    REFUSED = "refused", "was refused"
