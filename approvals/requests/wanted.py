"""An ask with everything it names looked up: the place, the kind of GPU, the price, the gate."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import date, datetime
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from accounts.models import Team
from accounts.teams import Project
from allocations.changes import ended_namespace
from allocations.models import Budget
from catalogue.azure import REGIONS
from catalogue.endpoint import MODEL
from catalogue.gpus import GpuSpec
from catalogue.models import OfferingSetting, arrival_of, is_by_person, setting_of
from catalogue.namespace import NamespaceSpec
from catalogue.offering import NAME, Gate, Offering, Size, Spec
from catalogue.offerings import OFFERINGS
from catalogue.pricing import PRICED_BY, sized
from fleet.models import Cluster, Flavor
from policy.rules import Ask
from provisioning.actions import why_not_another
from provisioning.desired.isolation import flavors_of_team
from provisioning.models import Tenancy
from web.refusals import BadInput, BadValues, Conflict

if TYPE_CHECKING:
    from approvals.models import Request


# What the API calls these of pydantic's errors, as it does for the fields beside the spec; any other is invalid.
CODES = {"extra_forbidden": "unknown_field", "missing": "required"}
LONGEST_NAME = 100
# What may be named though it is not in the list.
FREE = frozenset({"project"})
SHAPES = {
    NAME: "Use small letters, digits and hyphens, at most 40: a letter first, and no hyphen last.",
    MODEL: "Use letters, digits and . _ / : - with a letter or digit first, such as org/model:1.",
}


class BadSpec(BadValues):
    """Fields of a spec that cannot be taken as they are, whatever they name."""


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """What a form or an API call asks for; `tenancy` and `flavor` are None where the offering needs none.

    Everything in it was found by `resolve` or was at hand, and may be seen by who asks.
    """

    team: Team
    offering: Offering
    spec: Spec
    size: Size
    setting: OfferingSetting
    until: datetime
    starts: datetime | None = None  # from then on, where it is not to begin at once
    asked_at: datetime | None = None  # when it was, where it waits since then
    reason: str = ""
    tenancy: Tenancy | None = None
    flavor: Flavor | None = None
    cluster: Cluster | None = None
    renews: int | None = None  # the request whose GPUs go on under this one
    renewed_hold: int = 0  # what those are held under now; 0 for what renews nothing
    namespace: str = ""  # the team's namespace that was named, which is needed where it has several on a cluster
    budgets: Mapping[date, Budget] | None = (
        None  # the team's, by month, once they are locked
    )

    @classmethod
    def of_gpus(
        cls,
        *,
        tenancy: Tenancy,
        flavor: Flavor,
        gpus: int,
        until: datetime,
        purpose: str,
        reason: str = "",
        offering: str = "gpus",
        namespace: str = "",
    ) -> "Wanted":
        """GPUs of a kind for a team where it is; `gpus` may be a number that `check_sense` refuses."""
        spec = GpuSpec.model_construct(flavor=flavor.key, gpus=gpus, purpose=purpose)
        return priced(
            team=tenancy.team,
            offering=OFFERINGS[offering],
            spec=spec,
            until=until,
            reason=reason,
            tenancy=tenancy,
            flavor=flavor,
            cluster=flavor.cluster,
            namespace=namespace,
        )

    @property
    def count(self) -> int:
        """How many units."""
        return self.size.count

    @property
    def gpus(self) -> int:
        """GPUs in all."""
        return self.size.count * self.size.gpus_each

    @property
    def purpose(self) -> str:
        """What it is for, as requests are listed by."""
        said = getattr(self.spec, "purpose", "") if self.offering.on_cluster else ""
        return self.offering.purpose or said or "other"

    @property
    def name(self) -> str:
        """In a few words: "2 × A100"."""
        return self.offering.title(
            self.spec, product=self.flavor.kind if self.flavor else ""
        )

    def going_on_from(self, request: "Request | None") -> "Wanted":
        """The same as a renewal of a request; as it is, where there is none."""
        return (
            self
            if request is None
            else replace(self, renews=request.pk, renewed_hold=request.hold_id)
        )

    def ask(self) -> Ask:
        """As the policy sees it."""
        return Ask(
            count=self.size.count,
            gpus_each=self.size.gpus_each,
            usd_per_hour_each=self.size.usd_per_hour_each,
            until=self.until,
            starts=self.starts,
            asked_at=self.asked_at,
            offering=self.offering.key,
            name=self.offering.name,
            environment=environment_of(self.offering, self.spec, self.tenancy),
            flavor=self.flavor.name if self.flavor else "",
            tier=self.team.tier,
            reversible_minutes=self.offering.reversible_minutes,
            by_person=is_by_person(self.offering),
            decided_by_people=self.setting.gate == Gate.APPROVAL,
            least=self.spec.least(),
            arrival=arrival_of(self.offering, self.cluster),
        )

    def of(self, count: int) -> "Wanted":
        """The same for another number of units."""
        spec = type(self.spec).model_construct(**self.spec.fewer(count))
        return replace(self, spec=spec, size=replace(self.size, count=count))

    def on(self, flavor: Flavor) -> "Wanted":
        """The same with the flavor, and so the price, as they are now, under a lock."""
        size = sized(self.offering, self.spec, flavor, self.setting)
        return replace(self, flavor=flavor, cluster=flavor.cluster, size=size)


def environment_of(offering: Offering, spec: Spec, tenancy: Tenancy | None) -> str:
    """In which environment an ask is judged; empty for what has none."""
    if offering.judged_as:
        return offering.judged_as
    return tenancy.environment if tenancy else str(getattr(spec, "environment", ""))


def resolve(
    key: str,
    said: Mapping[str, Any],
    *,
    team: Team,
    until: datetime,
    starts: datetime | None = None,
    reason: str = "",
    namespace: str = "",
    setting: OfferingSetting | None = None,
) -> Wanted:
    """Look up what a spec names; raises BadInput at the field that is wrong, Conflict for what is not offered now.

    It is BadSpec for a value of the spec that would be wrong anywhere.

    `starts` is None for what is to begin at once.
    `namespace` says which of the team's namespaces on the cluster it is for; it may be empty where there is one.
    `setting` is how it is offered, where that is known already.
    """
    offering = OFFERINGS.get(key)
    if offering is None:
        raise BadInput(
            f"Choose one of: {', '.join(OFFERINGS)}.",
            code="unknown_offering",
            field="offering",
        )
    spec = _typed(offering, said)
    if starts is not None and not offering.may_begin_later:
        raise BadInput(
            f"{offering.name}: this begins at once; ask for it when you need it.",
            code="begins_at_once",
            field="starts_at",
        )
    flavor = (
        _flavor(str(getattr(spec, "flavor", "")), team) if offering.on_cluster else None
    )
    name = getattr(spec, "cluster", "")
    cluster = flavor.cluster if flavor else _cluster(name, team) if name else None
    tenancy = None
    if isinstance(spec, NamespaceSpec):
        _check_new_namespace(spec, team)
    elif cluster is not None:
        tenancy = _tenancy_on(
            cluster,
            team,
            namespace,
            missing="flavor" if offering.on_cluster else "cluster",
        )
    _check_region(str(getattr(spec, "region", "")))
    return priced(
        team=team,
        offering=offering,
        spec=spec,
        until=until,
        starts=starts,
        reason=reason,
        tenancy=tenancy,
        flavor=flavor,
        cluster=cluster,
        namespace=namespace,
        setting=setting,
    )


def kept_namespace(request: "Request", said: Mapping[str, Any]) -> str:
    """The namespace of a request for what is changed about it; empty where it goes to another cluster."""
    place = request.tenancy
    if place is None or isinstance(request.asked, NamespaceSpec):
        return ""
    key = str(said.get("flavor", "") or said.get("cluster", ""))
    cluster = key.partition("/")[0] or place.cluster.name
    return place.namespace if cluster == place.cluster.name else ""


def priced(
    *,
    offering: Offering,
    spec: Spec,
    flavor: Flavor | None,
    setting: OfferingSetting | None = None,
    **rest: Any,
) -> Wanted:
    """An ask with its price and its gate as they are now; raises BadInput for what has no price."""
    setting = setting or setting_of(offering)
    try:
        size = sized(offering, spec, flavor, setting)
    except KeyError as missing:
        raise BadInput(
            f"There is no price for {missing.args[0]}, so nobody could say what it costs. Choose another.",
            code="no_price",
            field=next((n for n in PRICED_BY if hasattr(spec, n)), "offering"),
        ) from missing
    return Wanted(
        offering=offering, spec=spec, flavor=flavor, size=size, setting=setting, **rest
    )


def _typed(offering: Offering, said: Mapping[str, Any]) -> Spec:
    try:
        return offering.spec.model_validate(dict(said))
    except ValidationError as error:
        raise BadSpec(
            [_problem(offering, {**one}) for one in error.errors(include_url=False)]
        ) from error


def _problem(offering: Offering, error: Mapping[str, Any]) -> BadInput:
    """One value of a spec that cannot be taken, in words."""
    # What is no name at all, such as half a character, has no place in the spec.
    field = str(error["loc"][0])[:LONGEST_NAME] if error["loc"] else ""
    limits = error.get("ctx", {})
    is_choice = "list" in (
        getattr(offering.spec.model_fields.get(field), "json_schema_extra", None) or {}
    )
    words = {
        "extra_forbidden": f"{offering.name} has no such field.",
        "missing": "This is needed.",
        "string_pattern_mismatch": "Choose one of the list."
        if is_choice and field not in FREE
        else SHAPES.get(
            str(limits.get("pattern")), "This is not written as such a name is."
        ),
        "string_type": "Give a text.",
        "string_too_short": "This is needed.",
        "string_too_long": f"At most {limits.get('max_length', 0)} characters.",
        "int_type": "Write a whole number.",
        "greater_than_equal": f"At least {limits.get('ge', 1)}.",
        "less_than_equal": f"At most {limits.get('le', 0):,}.",
        "literal_error": f"Choose one of: {limits.get('expected', '')}.",
    }
    return BadInput(
        words.get(error["type"], f"{error['msg']}."),
        code=CODES.get(error["type"], "invalid"),
        field=field,
    )


def _flavor(key: str, team: Team) -> Flavor:
    cluster, _, name = key.partition("/")
    rows = flavors_of_team(team).select_related("cluster")
    found = rows.filter(cluster__name=cluster, name=name).first()
    if found is None:
        raise _not_there()
    return found


def _cluster(name: str, team: Team) -> Cluster:
    found = Cluster.objects.open_to(team).filter(name=name).first()
    if found is None:
        raise BadInput(
            "Choose a cluster that takes teams.",
            code="no_such_cluster",
            field="cluster",
        )
    return found


def _check_region(name: str) -> None:
    if (
        name
        and name not in REGIONS
        and not Cluster.objects.filter(region=name).exists()
    ):
        raise BadInput(
            "Choose a region of the list.", code="no_such_region", field="region"
        )


def _check_new_namespace(spec: NamespaceSpec, team: Team) -> None:
    project = Project.objects.filter(team=team, slug=spec.project).first()
    cluster = _cluster(spec.cluster, team)
    refusal = why_not_another(project, cluster, spec.environment) if project else ""
    # What has ended and still stands is had again, as it is.
    if refusal and (
        project is None or ended_namespace(project, cluster, spec.environment) is None
    ):
        raise Conflict(refusal, code="already_there", field="cluster")


def _tenancy_on(
    cluster: Cluster, team: Team, namespace: str, *, missing: str
) -> Tenancy:
    """The team's namespace on a cluster; raises BadInput where it has none, or several and none was named."""
    rows = Tenancy.objects.present().filter(team=team, cluster=cluster)
    there = list(rows.select_related("team", "cluster", "project"))
    if namespace:
        named = next((row for row in there if row.namespace == namespace), None)
        if named is None:
            raise BadInput(
                f"{team.name} has no such namespace on {cluster.title}.",
                code="not_there",
                field="namespace",
            )
        return named
    if not there:
        raise _not_there(missing)
    # What leaves takes nothing new, so that it is no choice beside one that stays.
    open_ones = [row for row in there if row.is_here] or there
    if len(open_ones) > 1:
        names = ", ".join(row.namespace for row in open_ones)
        raise BadInput(
            f"{team.name} has several namespaces on {cluster.title}. Name one of them: {names}.",
            code="choose_namespace",
            field="namespace",
        )
    return open_ones[0]


def _not_there(field: str = "flavor") -> BadInput:
    what = "kind of GPU" if field == "flavor" else "name"
    return BadInput(
        f"The team has no place on a cluster with this {what}.",
        code="not_there",
        field=field,
    )
