"""What people do with notebook servers: launch one, start it again, stop it, keep it though it is idle, remove it.

Platform leads exempt one from idle stops until a date.
"""

import hashlib
import secrets
from collections.abc import Collection, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

from django.conf import settings
from django.db import IntegrityError, transaction
from django.db.models import Q

from accounts.models import Membership, User
from accounts.roles import Permission
from audit.actors import PORTAL
from audit.events import Kind
from audit.log import record
from fleet.models import Flavor
from notebooks.hubs.actions import NOT_WITH_VOLCANO
from notebooks.hubs.models import Hub, HubQuerySet
from notebooks.hubs.people import username_at
from notebooks.models import Profile
from notebooks.places import flavors_on, place_of
from notebooks.profile_desk.kept import Offered, offered, retired_words
from notebooks.profiles.choosing import Chosen, NotAChoice, chosen, options_within
from notebooks.profiles.idle import MEASURED_FOR
from notebooks.profiles.secrets import refused as refused_secrets
from notebooks.profiles.spawning import refused_here
from notebooks.servers.enqueue import enqueue_on_commit
from notebooks.servers.models import NAME_PREFIX, NotebookServer
from notebooks.servers.savings import note_start
from notebooks.servers.states import State, StopReason
from provisioning.desired.variables import SecretVariable, names_in_words
from provisioning.models import Tenancy
from ui.amounts import gpus as gpus_words
from web.names import LONGEST_NAME, checked_name
from web.refusals import BadInput, Conflict, NoRight, pointer_to

MAX_LIVE = 10  # servers of one person that run at once, on all clusters
TOO_MANY = f"{MAX_LIVE} notebooks of yours run. Stop one first."
KEPT_FOR = timedelta(hours=2)
LONGEST_EXEMPTION = timedelta(days=30)
MAX_REASON = 200


@dataclass(frozen=True)
class Asked:
    """A profile with what was chosen in it, and the flavor of its GPUs; None where it takes none."""

    offer: Offered
    chosen: Chosen
    flavor: Flavor | None


@transaction.atomic
def launch(
    tenancy_id: int,
    profile: str,
    options: Mapping[str, str],
    *,
    by: User,
    key: str,
    now: datetime,
    title: str = "",
    secrets: Sequence[SecretVariable] = (),
) -> NotebookServer:
    """Keep a server that a worker starts at once in the hub of the namespace's cluster; the same key is the same one.

    `secrets` are variables that it takes from Secrets of the namespace; whether those are there the cluster knows.
    Raises NoRight for who is not of the team, Conflict where nothing can be started there now, BadInput naming the
    field for a profile, a choice or a variable that there cannot be, or that takes more GPUs than the team can have.
    """
    lock_person(by.pk)
    tenancy = _tenancy(tenancy_id, by=by)
    if not tenancy.observed_generation:
        raise Conflict(
            "Your namespace is not there yet. Wait until it is set up.",
            code="not_set_up",
        )
    return _launch(
        tenancy,
        profile,
        options,
        by=by,
        key=key,
        now=now,
        title=title,
        secrets=secrets,
    )


def _launch(
    tenancy: Tenancy,
    profile: str,
    options: Mapping[str, str],
    *,
    by: User,
    key: str,
    now: datetime,
    title: str = "",
    secrets: Sequence[SecretVariable] = (),
    too_many: str = TOO_MANY,
) -> NotebookServer:
    hub = _locked_hub(tenancy)
    username = username_at(hub, by)
    name = _name(by, key)
    same = NotebookServer.objects.filter(
        tenancy__cluster=tenancy.cluster_id, username=username, name=name
    )
    if (earlier := same.described().first()) is not None:
        if (earlier.tenancy_id, earlier.profile.slug) != (tenancy.pk, profile):
            raise Conflict(
                "This key came with other values before. Use a new key.",
                code="another_notebook",
            )
        return earlier
    _refuse_many(by, too_many)
    asked = _checked(tenancy, profile, options, secrets)
    if title := title.strip():
        title = checked_name(title, field="title")
    server = NotebookServer(
        team=tenancy.team,
        tenancy=tenancy,
        owner=by,
        profile=Profile.objects.get(slug=profile),
        username=username,
        name=name,
        title=title or asked.offer.document.title[:LONGEST_NAME],
        secrets=[one.as_json for one in secrets],
        created_at=now,
        launched_at=now,
        requeue_at=now,
        generation=1,
    )
    _take(server, asked)
    try:
        with transaction.atomic():
            server.save(force_insert=True)
    except IntegrityError:
        # The same key came twice at once: the other one was first.
        return same.described().get()
    _record_launch(server, by=by)
    enqueue_on_commit(server.pk)
    return server


def launch_for(
    tenancy: Tenancy, profile: str, *, gpus: int, owner: User, key: str, now: datetime
) -> NotebookServer:
    """Launch a server with GPUs that were granted for it, with the largest choices that they are enough for.

    It starts once they are on the cluster. Raises as `launch`, in the transaction of the grant and in words for whoever
    grants it, who has called `lock_person` for its owner before.
    """
    options = options_within(_offered(profile).document, gpus)
    return _launch(
        _tenancy(tenancy.pk, by=owner),
        profile,
        options,
        by=owner,
        key=key,
        now=now,
        too_many=f"{owner.name} runs {MAX_LIVE} notebooks, as many as one person may. "
        "They, a lead of the team or a platform lead stop one first.",
    )


def check_offer(tenancy: Tenancy, profile: str, *, flavor: str, gpus: int) -> None:
    """Refuse what `launch_for` could not start with so many GPUs of a flavor: raises Conflict, BadInput as `launch`."""
    _hub(tenancy)
    document = _offered(profile).document
    if refused := refused_here(
        document, place_of(tenancy, flavors_on(tenancy.cluster_id))
    ):
        raise BadInput(refused, code="not_for_you", field="profile")
    if document.flavor != flavor:
        kind = Flavor.objects.filter(name=document.flavor).kinds().get(document.flavor)
        words = (
            f"takes GPUs of the kind {kind or document.flavor}"
            if document.flavor
            else "takes no GPUs"
        )
        raise BadInput(
            f"{document.title} {words}. Choose another.",
            code="other_flavor",
            field="profile",
        )
    try:
        found = chosen(document, options_within(document, gpus))
    except NotAChoice as refused_choice:
        # Nobody is asked for options here, so a choice that has none beforehand stays open.
        raise BadInput(
            f"{document.title} starts with a choice of your own. Launch it on the page Notebooks, or choose another.",
            code="no_such_choice",
            field="profile",
        ) from refused_choice
    if found.gpus > gpus:
        raise BadInput(
            f"{document.title} takes {found.gpus} GPUs at least. Ask for as many.",
            code="too_few_gpus",
            field="gpus",
        )


@transaction.atomic
def start(
    server_id: int,
    *,
    by: User,
    now: datetime,
    secrets: Sequence[SecretVariable] | None = None,
) -> NotebookServer:
    """Start a stopped server again with its choices, as its profile is now; one that runs is left alone.

    `secrets` take the place of its variables from Secrets, None keeps them; one that runs gets no others.
    Raises NoRight for everybody but its owner, Conflict, BadInput as `launch`.
    """
    lock_person(by.pk)
    server = _locked(server_id)
    if server.owner_id != by.pk:
        raise NoRight("Who launched a notebook starts it again.", code="not_the_owner")
    tenancy = _tenancy(server.tenancy_id, by=by)
    hub = _locked_hub(tenancy)
    if server.state == State.STOPPING:
        raise Conflict(
            "It is being stopped. Start it when it has stopped.", code="is_stopping"
        )
    secrets = server.secret_variables if secrets is None else secrets
    if server.is_live:
        if [*secrets] != server.secret_variables:
            raise Conflict(
                "It runs, and variables come with a start. Stop it first.",
                code="is_running",
            )
        return server
    if refused := retired_words(server.profile):
        raise Conflict(refused, code="profile_retired")
    _refuse_many(by, TOO_MANY)
    _take(server, _checked(tenancy, server.profile.slug, server.options, secrets))
    _name_anew(server, hub)
    if secrets and not server.name:
        raise BadInput(
            "Its hub gives variables to servers with a name alone, and this one has none. Launch another notebook with "
            "them.",
            code="unnamed_server",
            field="secrets",
        )
    server.secrets = [one.as_json for one in secrets]
    server.state, server.message = State.STARTING, ""
    server.launched_at, server.stopped_at, server.stopped_by, server.stop_reason = (
        now,
        None,
        None,
        "",
    )
    server.active_at = server.gpu_busy_at = server.warned_at = server.keep_until = None
    server.gpu_measured_since = server.gpu_measured_at = None
    server.kept_times, server.keep_reason = 0, ""
    server.limit_told_at = server.told_end = server.secret_missed_at = None
    server.generation += 1
    server.retry(now=now)
    server.save()
    note_start(server, now=now)
    _record_launch(server, by=by)
    enqueue_on_commit(server.pk)
    return server


@transaction.atomic
def stop(server_id: int, *, by: User, now: datetime) -> NotebookServer:
    """Stop a server; its volumes stay. Asked again while it stops it is the same, but a parked one is tried again.

    Raises NoRight for who may not, Conflict for one that does not run.
    """
    server = _locked(server_id)
    if not may_stop(server, by, leads=teams_led_by(by)):
        raise NoRight(
            "Its owner, leads of the team and platform leads stop a notebook.",
            code="not_yours_to_stop",
        )
    if not server.is_live:
        raise Conflict(
            f"It does not run: {State(server.state).words.lower()}.", code="not_running"
        )
    return _stop(server, reason=StopReason.PERSON, by=by, now=now)


@transaction.atomic
def stop_because(server_id: int, reason: StopReason, *, now: datetime) -> None:
    """Stop a server for a reason of the portal's own; one that does not run, stops already or is gone is left alone."""
    rows = NotebookServer.objects.locked().select_related("profile")
    server = rows.filter(pk=server_id).first()
    if server is not None and server.is_live and server.state != State.STOPPING:
        _stop(server, reason=reason, by=None, now=now)


@transaction.atomic
def keep(
    server_id: int, *, by: User, now: datetime, reason: str = ""
) -> NotebookServer:
    """Leave a server alone for two hours though it is idle; from the second time on it needs a reason.

    Raises NoRight for everybody but its owner and platform leads, Conflict for one that does not run, BadInput.
    """
    server = _locked(server_id)
    if not may_keep(server, by):
        raise NoRight(
            "Its owner and platform leads keep a notebook.", code="not_the_owner"
        )
    if server.state not in (State.STARTING, State.READY):
        raise Conflict(
            f"It does not run: {State(server.state).words.lower()}.", code="not_running"
        )
    reason = _checked_reason(reason, is_needed=bool(server.kept_times))
    server.keep_until = max(now + KEPT_FOR, server.keep_until or now)
    server.warned_at, server.keep_reason = None, reason
    server.kept_times += 1
    server.save(update_fields=["keep_until", "warned_at", "keep_reason", "kept_times"])
    _record(
        Kind.NOTEBOOK_KEPT,
        server,
        by=by,
        until=server.keep_until,
        reason=reason or None,
    )
    return server


@transaction.atomic
def exempt(
    server_id: int, *, until: datetime, reason: str, by: User, now: datetime
) -> NotebookServer:
    """Have a notebook not be stopped for being idle until a moment, also when it is started again meanwhile.

    A new end and reason replace the ones before. Raises NoRight for everybody but platform leads, BadInput.
    """
    server = _locked(server_id)
    _require_exempting(by)
    reason = _checked_reason(reason, is_needed=True)
    if not now < until <= now + LONGEST_EXEMPTION:
        raise BadInput(
            "Choose a moment within the next 30 days.", code="bad_end", field="until"
        )
    server.exempt_until, server.exempt_by, server.exempt_reason = until, by, reason
    server.warned_at = None
    server.save(
        update_fields=["exempt_until", "exempt_by", "exempt_reason", "warned_at"]
    )
    _record(Kind.NOTEBOOK_EXEMPTED, server, by=by, until=until, reason=reason)
    return server


@transaction.atomic
def end_exemption(server_id: int, *, by: User, now: datetime) -> NotebookServer:
    """End the exemption of a notebook before its time; asked twice it is the same. Raises NoRight."""
    server = _locked(server_id)
    _require_exempting(by)
    if server.is_exempt(now):
        _record(Kind.NOTEBOOK_EXEMPTION_ENDED, server, by=by, until=server.exempt_until)
        server.exempt_until, server.exempt_by, server.exempt_reason = None, None, ""
        server.save(update_fields=["exempt_until", "exempt_by", "exempt_reason"])
    return server


def note_gpu_use(
    measured: Collection[int], *, busy: Collection[int], now: datetime
) -> None:
    """Keep whose GPUs were measured now, and whose of them compute.

    Those that compute count as used, and a warning that they are idle is over. After a gap the measure begins anew.
    What was measured later stays.
    """
    rows = NotebookServer.objects.filter(pk__in=measured, state=State.READY)
    # First, so that none of them counts as measured and idle in between.
    computing = rows.filter(
        Q(gpu_measured_at=None) | Q(gpu_measured_at__lt=now), pk__in=busy
    )
    computing.update(gpu_busy_at=now, warned_at=None)
    has_gap = Q(gpu_measured_at=None) | Q(gpu_measured_at__lt=now - MEASURED_FOR)
    rows.filter(has_gap).update(gpu_measured_since=now, gpu_measured_at=now)
    rows.filter(gpu_measured_at__lt=now).update(gpu_measured_at=now)


def take_warning_back(server_id: int) -> None:
    """Forget that people were told that a server is idle, because nobody can tell it any more."""
    NotebookServer.objects.filter(pk=server_id, state=State.READY).update(
        warned_at=None
    )


@transaction.atomic
def remove(server_id: int, *, by: User) -> None:
    """Forget a stopped server: it is listed no more. Its volumes stay. Raises NoRight, Conflict while it runs."""
    server = _locked(server_id)
    if server.owner_id != by.pk:
        raise NoRight("Who launched a notebook removes it.", code="not_the_owner")
    if server.is_live:
        raise Conflict("Stop it before you remove it.", code="is_running")
    removed = copy(server)  # with its key
    # Before the audit chain: what was granted for it is locked to forget it.
    server.delete()
    _record(Kind.NOTEBOOK_REMOVED, removed, by=by)


def lock_person(user_id: int) -> None:
    """Have two launches for one person come one after the other, so that each counts what the other one started.

    People are locked after budgets, and before flavors and tenancies.
    """
    list(
        User.objects.select_for_update(of=("self",), no_key=True)
        .filter(pk=user_id)
        .values_list("pk")
    )


def may_stop(server: NotebookServer, by: User, *, leads: Collection[int]) -> bool:
    """Whether this person may stop a server: its owner, leads of its team, and platform leads.

    `leads` are the teams that they lead, as `teams_led_by` reads them once for a whole list.
    """
    is_own = server.owner_id == by.pk and server.team_id in by.team_ids
    return is_own or server.team_id in leads or by.may(Permission.GIVE_BACK_FOR_TEAMS)


def may_keep(server: NotebookServer, by: User) -> bool:
    """Whether this person may leave a server alone though nobody uses it: its owner, and platform leads."""
    return server.owner_id == by.pk or by.may(Permission.GIVE_BACK_FOR_TEAMS)


def may_exempt(by: User) -> bool:
    """Whether this person may exempt notebooks from idle stops: platform leads."""
    return by.may(Permission.GIVE_BACK_FOR_TEAMS)


def teams_led_by(person: User) -> list[int]:
    """The teams that somebody leads."""
    return list(
        person.memberships.filter(part=Membership.Part.LEAD).values_list(
            "team", flat=True
        )
    )


def _stop(
    server: NotebookServer, *, reason: StopReason, by: User | None, now: datetime
) -> NotebookServer:
    if server.state == State.STOPPING and server.parked_at is None:
        return server
    if server.state != State.STOPPING:
        server.state, server.stop_reason, server.stopped_by = State.STOPPING, reason, by
        server.generation += 1
        _record(Kind.NOTEBOOK_STOPPED, server, by=by, reason=str(reason))
    server.message = ""
    fields = [
        "state",
        "stop_reason",
        "stopped_by",
        "generation",
        "message",
        *server.retry(now=now),
    ]
    server.save(update_fields=fields)
    enqueue_on_commit(server.pk)
    return server


def _require_exempting(by: User) -> None:
    if not may_exempt(by):
        raise NoRight(
            "Platform leads keep a notebook for longer than two hours.",
            code="not_a_platform_lead",
        )


def _checked_reason(reason: str, *, is_needed: bool) -> str:
    """Why a notebook is left alone, stripped; raises BadInput."""
    reason = reason.strip()
    if is_needed and not reason:
        raise BadInput(
            "Say why it is kept although it is idle.",
            code="reason_missing",
            field="reason",
        )
    if len(reason) > MAX_REASON:
        raise BadInput(
            f"Write at most {MAX_REASON} characters.",
            code="reason_too_long",
            field="reason",
        )
    return reason


def _locked(server_id: int) -> NotebookServer:
    return NotebookServer.objects.locked().select_related("profile").get(pk=server_id)


def _take(server: NotebookServer, asked: Asked) -> None:
    flavor, gpus = asked.flavor, asked.chosen.gpus
    server.profile_version, server.options = (
        asked.offer.number,
        dict(asked.chosen.options),
    )
    server.flavor, server.gpus = flavor, gpus
    server.usd_per_hour = gpus * flavor.price_per_gpu_hour if flavor else Decimal(0)


def _checked(
    tenancy: Tenancy,
    profile: str,
    options: Mapping[str, str],
    secrets: Sequence[SecretVariable],
) -> Asked:
    """The profile with what was chosen in it; raises BadInput where a hub would refuse it, or its team lacks GPUs."""
    offer = _offered(profile)
    flavors = flavors_on(tenancy.cluster_id)
    place = place_of(tenancy, flavors)
    if refused := refused_here(offer.document, place):
        raise BadInput(refused, code="not_for_you", field="profile")
    try:
        found = chosen(offer.document, options, images=settings.ENV.run_images)
    except NotAChoice as refused_choice:
        raise BadInput(
            refused_choice.sentence,
            code="no_such_choice",
            field=f"options.{refused_choice.option}",
            pointer=pointer_to("options", refused_choice.option),
        ) from refused_choice
    if why := refused_secrets(offer.document, secrets):
        raise BadInput(why, code="bad_secret", field="secrets")
    flavor = flavors.get(offer.document.flavor)
    room = place.gpus.get(offer.document.flavor, 0)
    if found.gpus > room:
        product = flavor.kind if flavor else offer.document.flavor
        have = (
            f"can have {gpus_words(room, product)}" if room else f"holds no {product}"
        )
        raise BadInput(
            f"It takes {gpus_words(found.gpus, product)}; your team {have} there. Ask for {found.gpus - room} more.",
            code="too_few_gpus",
            field="profile",
        )
    return Asked(offer, found, flavor if found.gpus else None)


def _offered(profile: str) -> Offered:
    offer = next((one for one in offered() if one.document.slug == profile), None)
    if offer is None:
        sentence = f"There is no profile “{profile[:60]}” now. Choose another."
        raise BadInput(sentence, code="no_such_profile", field="profile")
    return offer


def _tenancy(tenancy_id: int, *, by: User) -> Tenancy:
    tenancy = Tenancy.objects.select_related("team", "project", "cluster").get(
        pk=tenancy_id
    )
    if tenancy.team_id not in by.team_ids:
        raise NoRight("People of the team start its notebooks.", code="not_of_the_team")
    if not tenancy.is_here:
        raise Conflict(
            "The team leaves this cluster: nothing new starts there.", code="is_leaving"
        )
    return tenancy


def _hub(tenancy: Tenancy) -> Hub:
    return _connected(tenancy, Hub.objects.all())


def _locked_hub(tenancy: Tenancy) -> Hub:
    """The hub of a namespace, which is neither disconnected nor another one before what starts there is counted."""
    return _connected(tenancy, Hub.objects.locked())


def _connected(tenancy: Tenancy, hubs: HubQuerySet) -> Hub:
    if tenancy.cluster.has_volcano:
        raise Conflict(f"{tenancy.cluster.title}: {NOT_WITH_VOLCANO}", code="no_hub")
    hub = hubs.filter(cluster=tenancy.cluster_id).first()
    if hub is None:
        raise Conflict(
            f"{tenancy.cluster.title} has no JupyterHub that the portal knows. Platform leads connect one.",
            code="no_hub",
        )
    return hub


def _refuse_many(by: User, sentence: str) -> None:
    if NotebookServer.objects.live().filter(owner=by).count() >= MAX_LIVE:
        raise Conflict(sentence, code="too_many_notebooks")


def _name_anew(server: NotebookServer, hub: Hub) -> None:
    """Have a server belong to its owner at the hub as it is now: another hub may know somebody else by the old name.

    It keeps its own name, unless its owner has another server of that name there by now.
    """
    server.username = username_at(hub, server.owner)
    others = NotebookServer.objects.filter(
        tenancy__cluster=hub.cluster_id, username=server.username, name=server.name
    )
    if others.exclude(pk=server.pk).exists():
        server.name = f"{NAME_PREFIX}{secrets.token_hex(6)}"


def _name(by: User, key: str) -> str:
    """The server's name at its hub: letters, digits and a hyphen, as JupyterHub 6 takes it."""
    return f"{NAME_PREFIX}{hashlib.sha256(f'{by.pk}:{key}'.encode()).hexdigest()[:12]}"


def _record_launch(server: NotebookServer, *, by: User) -> None:
    names = names_in_words(server.secret_variables)
    _record(Kind.NOTEBOOK_LAUNCHED, server, by=by, secrets=names or None)


def _record(
    kind: Kind, server: NotebookServer, *, by: User | None, **facts: Any
) -> None:
    record(
        kind,
        actor=by.as_actor() if by is not None else PORTAL,
        subject=("notebook", server.pk),
        team_id=server.team_id,
        name=server.title,
        profile=server.profile.slug,
        gpus=server.gpus,
        **facts,
    )
