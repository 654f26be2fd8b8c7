"""How the API shows runs, the places for them and the templates, and what it takes for a run."""

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from accounts.api import PersonSerializer, TeamNameSerializer
from provisioning.desired.variables import MAX_SECRETS
from web.names import LONGEST_NAME
from web.parsing import LARGEST_BODY
from web.strict import (
    Boolean,
    Choice,
    Integer,
    PageQuery,
    QueryNumber,
    StrictSerializer,
    Text,
)
from workloads.api import WhySerializer
from workloads.failures.causes import CHOICES
from workloads.gpu_use.overall import use_told
from workloads.gpu_use.serializers import RunUseSerializer
from workloads.runs.held_until import TooFew
from workloads.runs.logs.reading import MAX_KEPT, PLACE, TAIL
from workloads.runs.models import Run
from workloads.runs.planning.plan import MAX_CLAIMS, MAX_VALUE
from workloads.runs.planning.spot import spot_of
from workloads.runs.states import State
from workloads.templates.parameters import MAX_SCRIPT_BYTES

# The largest number that the database has.
MAX_ATTEMPT = 2**31 - 1
STATES = [(state.value, state.words) for state in State]


class ScriptSerializer(StrictSerializer):
    """A pasted script; it goes along as a ConfigMap."""

    file = Text(max_length=100, help_text="A plain name, such as `train.py`.")
    text = Text(
        max_length=LARGEST_BODY,
        trim_whitespace=False,
        help_text=f"At most {MAX_SCRIPT_BYTES // 1024} KiB; fetch a larger one from Git.",
    )


class RepositorySerializer(StrictSerializer):
    """A source that is fetched before the program begins."""

    url = Text(max_length=400, help_text="Begins with https:// and holds no password.")
    revision = Text(max_length=200, help_text="A branch, a tag or a commit.")
    secret = Text(
        max_length=253,
        required=False,
        allow_blank=True,
        help_text="A Secret of the namespace with the `username` and `password` of a private one.",
    )


class RunClaimSerializer(StrictSerializer):
    """A volume of the namespace, mounted at a path."""

    name = Text(max_length=253, help_text="The name of its PersistentVolumeClaim.")
    path = Text(max_length=400)
    read_only = Boolean(required=False)  # type: ignore[assignment]


class SecretVariableSerializer(StrictSerializer):
    """A variable whose value stands in a Secret of the namespace, which the portal does not read."""

    variable = Text(max_length=100)
    secret = Text(max_length=253, help_text="The name of the Secret.")
    key = Text(max_length=253)


class TopologySerializer(StrictSerializer):
    """How close the nodes of a run are: all in one domain of a level of the flavor's topology."""

    level = Text(max_length=316, help_text="One of the flavor's `levels`.")
    required = Boolean(  # type: ignore[assignment]
        required=False,
        default=True,
        help_text="Whether it waits for such nodes, or takes others then.",
    )


class SubmissionSerializer(StrictSerializer):
    """What to run and where. `values` are the parameters of the template; see `/api/v1/templates/`."""

    tenancy = Integer(min_value=1, help_text="One of `/api/v1/places/`.")
    template = Text(max_length=40)
    title = Text(max_length=LONGEST_NAME)
    flavor = Text(
        max_length=40,
        required=False,
        allow_blank=True,
        help_text="Empty for a run without GPUs.",
    )
    priority = Text(max_length=63, required=False, allow_blank=True)
    values = serializers.DictField(
        child=serializers.JSONField(
            error_messages={"invalid": "Give a value that JSON knows."}
        ),
        required=False,
    )
    script = ScriptSerializer(required=False, allow_null=True)
    repository = RepositorySerializer(required=False, allow_null=True)
    claims = serializers.ListField(
        child=RunClaimSerializer(), required=False, max_length=MAX_CLAIMS
    )
    variables = serializers.DictField(
        child=Text(max_length=MAX_VALUE, allow_blank=True, trim_whitespace=False),
        required=False,
    )
    secrets = serializers.ListField(
        child=SecretVariableSerializer(), required=False, max_length=MAX_SECRETS
    )
    topology = TopologySerializer(required=False, allow_null=True)
    after = Integer(
        min_value=1,
        required=False,
        allow_null=True,
        help_text="A run of the team that has to finish before this one is sent. If it does not, this one is skipped.",
    )


class ChangesSerializer(StrictSerializer):
    """What differs from the earlier run; what is left out stays as it was.

    `values` and `variables` change name by name, and null takes one away. Another template keeps the values that it has
    a parameter for. The namespace stays, and of a run that goes on the place for checkpoints.
    """

    template = Text(max_length=40, required=False)
    title = Text(max_length=LONGEST_NAME, required=False)
    flavor = Text(
        max_length=40,
        required=False,
        allow_blank=True,
        help_text="Empty for a run without GPUs.",
    )
    priority = Text(max_length=63, required=False, allow_blank=True)
    values = serializers.DictField(
        child=serializers.JSONField(
            allow_null=True, error_messages={"invalid": "Give a value that JSON knows."}
        ),
        required=False,
    )
    script = ScriptSerializer(required=False, allow_null=True)
    repository = RepositorySerializer(required=False, allow_null=True)
    claims = serializers.ListField(
        child=RunClaimSerializer(), required=False, max_length=MAX_CLAIMS
    )
    variables = serializers.DictField(
        child=Text(
            max_length=MAX_VALUE,
            allow_blank=True,
            allow_null=True,
            trim_whitespace=False,
        ),
        required=False,
    )
    secrets = serializers.ListField(
        child=SecretVariableSerializer(), required=False, max_length=MAX_SECRETS
    )
    topology = TopologySerializer(required=False, allow_null=True)
    after = Integer(
        min_value=1,
        required=False,
        allow_null=True,
        help_text="Left out, it begins after the same run as before where that goes on, and is sent at once otherwise.",
    )


class RunQuery(PageQuery):
    """Which runs to list."""

    team = Text(required=False, max_length=40)
    state = Choice(choices=[state.value for state in State], required=False)
    live = Choice(
        choices=["true", "false"],
        required=False,
        help_text="Only those that have not ended, or have.",
    )
    mine = Choice(choices=["true"], required=False, help_text="Only one's own.")
    why = Choice(
        choices=["true"],
        required=False,
        help_text="Tell of each that is not over why it is where it is, for ten teams at most.",
    )
    template = Text(required=False, max_length=40)
    name = Text(
        required=False,
        max_length=63,
        help_text="What its objects on the cluster are called.",
    )


class LogQuery(StrictSerializer):
    """Which part of which log."""

    pod = Text(
        required=False,
        max_length=253,
        help_text="A pod of the run; its first one unless told otherwise.",
    )
    attempt = QueryNumber(
        required=False,
        min_value=1,
        max_value=MAX_ATTEMPT,
        help_text="What is kept of this attempt of the run, whatever runs now.",
    )
    tail = QueryNumber(
        required=False,
        min_value=1,
        max_value=MAX_KEPT,
        help_text=f"So many of the last lines, {TAIL:,} unless told otherwise. A stream begins with so many, and with "
        "what is kept unless told otherwise. Refused together with `after`.",
    )
    after = serializers.RegexField(
        PLACE,
        required=False,
        help_text="The `place` of the last line that you have: the lines behind it are told.",
        error_messages={"invalid": "Give the place of a line as an answer told it."},
    )
    follow = Choice(
        choices=["true"],
        required=False,
        help_text="Stream lines as server-sent events, as they are written.",
    )

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """Raises ValidationError for the last lines of those behind a place, which begin there."""
        if "tail" in attrs and "after" in attrs:
            raise serializers.ValidationError(
                {"tail": "Lines behind a place begin there: leave out tail, or after."}
            )
        return attrs


class ObstacleSerializer(serializers.Serializer[Any]):
    """Why a submission cannot be sent as it is."""

    field = serializers.CharField(help_text="The input at fault.")
    text = serializers.CharField()
    code = serializers.CharField()
    lacks = serializers.IntegerField(
        help_text="GPUs to ask for first; 0 where that does not help."
    )
    ask = serializers.SerializerMethodField(
        help_text="The form for those, filled in; empty where none lack."
    )

    @extend_schema_field(serializers.CharField())
    def get_ask(self, problem: Any) -> str:
        """The page's address behind the portal's own."""
        return str(self.context["ask"](problem.lacks)) if problem.lacks else ""


class StartSerializer(serializers.Serializer[Any]):
    """Whether a run that were sent now would start at once, as the form says it."""

    at_once = serializers.SerializerMethodField()
    sentence = serializers.CharField()
    detail = serializers.CharField(
        help_text="What is free, who waits, and how long others waited."
    )

    @extend_schema_field(serializers.BooleanField())
    def get_at_once(self, start: Any) -> bool:
        """Whether it neither waits nor borrows."""
        return bool(start["tone"] == "good")


class SpotSerializer(serializers.Serializer[Any]):
    """A run on spot beside the same run on demand, until its time limit; money is USD.

    The numbers are null where nobody has said how often nodes are taken back, or where the run has no time limit.
    """

    is_chosen = serializers.BooleanField(
        help_text="Whether the run asks for spot GPUs."
    )
    words = serializers.CharField()
    on_demand_usd = serializers.DecimalField(
        source="found.on_demand",
        max_digits=18,
        decimal_places=2,
        default=None,
        allow_null=True,
    )
    spot_usd = serializers.DecimalField(
        source="found.spot",
        max_digits=18,
        decimal_places=2,
        default=None,
        allow_null=True,
        help_text="With what is done twice; null also for a run that would never finish.",
    )
    spot_hours = serializers.DecimalField(
        source="found.hours",
        max_digits=18,
        decimal_places=2,
        default=None,
        allow_null=True,
    )
    interruptions = serializers.DecimalField(
        source="found.interruptions",
        max_digits=18,
        decimal_places=2,
        default=None,
        allow_null=True,
    )
    lost_usd = serializers.DecimalField(
        source="found.lost",
        max_digits=18,
        decimal_places=2,
        default=None,
        allow_null=True,
        help_text="What one interruption loses.",
    )
    break_even_minutes = serializers.IntegerField(
        source="found.break_even",
        default=None,
        allow_null=True,
        help_text="With checkpoints at most so far apart, spot is not dearer.",
    )


class RecommendedSerializer(serializers.Serializer[Any]):
    """The kind of GPU with the memory that the template needs and the least beyond it; USD per GPU-hour."""

    flavor = serializers.CharField()
    memory = serializers.IntegerField(
        source="pool.memory", help_text="GB of one GPU, or of one slice of it."
    )
    is_slice = serializers.BooleanField(
        source="pool.is_slice", help_text="Whether it is a MIG slice."
    )
    usd_per_gpu_hour = serializers.DecimalField(
        source="pool.usd_per_hour", max_digits=18, decimal_places=4
    )
    is_held = serializers.BooleanField(
        help_text="Whether the team holds some; ask for some otherwise."
    )
    is_chosen = serializers.BooleanField(
        help_text="Whether the submission asks for it."
    )
    words = serializers.CharField(help_text="Why.")


class TooFewSerializer(serializers.Serializer[Any]):
    """That the GPUs of a run that began now would end before it may."""

    at = serializers.DateTimeField(help_text="From when on too few are held.")
    left = serializers.IntegerField(help_text="How many are held then.")
    sentence = serializers.SerializerMethodField()

    @extend_schema_field(serializers.CharField())
    def get_sentence(self, found: TooFew) -> str:
        """The same in words, and what to do."""
        return str(self.context["too_few_words"](found))


class PlanSerializer(serializers.Serializer[Any]):
    """What would be created; money is USD."""

    name = serializers.CharField()
    is_possible = serializers.SerializerMethodField()
    problems = ObstacleSerializer(many=True)
    gpus = serializers.IntegerField()
    pods = serializers.IntegerField()
    borrows = serializers.IntegerField(help_text="GPUs beyond the guaranteed ones.")
    usd_per_hour = serializers.DecimalField(max_digits=18, decimal_places=4)
    usd_at_limit = serializers.DecimalField(
        max_digits=18,
        decimal_places=2,
        allow_null=True,
        help_text="When it runs until its time limit, which begins anew each time that it is preempted.",
    )
    limit_seconds = serializers.IntegerField(source="seconds", allow_null=True)
    start = serializers.SerializerMethodField()
    too_few_held = serializers.SerializerMethodField()
    spot = serializers.SerializerMethodField()
    recommended = RecommendedSerializer(
        allow_null=True,
        help_text="Null for a template that does not say how much memory a GPU needs.",
    )
    unknown_volumes = serializers.ListField(
        child=serializers.CharField(),
        help_text="Volumes that it mounts and the portal does not keep: unless the team made them, it never begins.",
    )
    manifests = serializers.ListField(child=serializers.DictField())

    @extend_schema_field(StartSerializer(allow_null=True))
    def get_start(self, plan: Any) -> Any:
        """Whether it starts at once or waits; null for what cannot be sent."""
        return (
            None if plan.problems else StartSerializer(self.context["start"](plan)).data
        )

    @extend_schema_field(TooFewSerializer(allow_null=True))
    def get_too_few_held(self, plan: Any) -> Any:
        """From when on it can be stopped, for its GPUs end; null where they last as long as it may run."""
        found = self.context["too_few_held"](plan)
        return (
            None
            if found is None
            else TooFewSerializer(found, context=self.context).data
        )

    @extend_schema_field(SpotSerializer(allow_null=True))
    def get_spot(self, plan: Any) -> Any:
        """What it costs bought the other way; null where the cluster has its GPUs one way alone."""
        found = spot_of(plan)
        return None if found is None else SpotSerializer(found).data

    @extend_schema_field(serializers.BooleanField())
    def get_is_possible(self, plan: Any) -> bool:
        """Whether nothing stands in its way."""
        return not plan.problems


class DifferenceSerializer(serializers.Serializer[Any]):
    """An input that changes, in words."""

    field = serializers.CharField(
        help_text="Its name in a submission or among `values`."
    )
    label = serializers.CharField()  # type: ignore[assignment]
    before = serializers.CharField(help_text="Empty where it was not given.")
    after = serializers.CharField(help_text="Empty where it is taken away.")


class ChangedPlanSerializer(PlanSerializer):
    """What would be created, and how it differs from the earlier run."""

    differences = DifferenceSerializer(many=True)


class RunShortSerializer(serializers.Serializer[Run]):
    """A run in a list; times are UTC, money is USD."""

    id = serializers.IntegerField()
    title = serializers.CharField()
    name = serializers.CharField(
        help_text="What its objects on the cluster are called."
    )
    template = serializers.CharField()
    template_version = serializers.IntegerField(
        help_text="0 for a template as it came with the product."
    )
    team = TeamNameSerializer()
    cluster = serializers.CharField(source="cluster.name")
    namespace = serializers.CharField(source="tenancy.namespace")
    tenancy = serializers.IntegerField(source="tenancy_id")
    requester = PersonSerializer()
    state = serializers.ChoiceField(choices=STATES)
    is_over = serializers.BooleanField()
    message = serializers.CharField(help_text="What the cluster said; may be empty.")
    cause = serializers.ChoiceField(
        choices=CHOICES,
        allow_blank=True,
        help_text="Why its program failed, which `message` says in a sentence; empty where that is not known.",
    )
    advice = serializers.CharField(
        help_text="What to do about the cause; empty without one."
    )
    flavor = serializers.CharField(source="flavor.name", default=None, allow_null=True)
    gpus = serializers.IntegerField()
    created_at = serializers.DateTimeField()
    sent_at = serializers.DateTimeField(allow_null=True)
    started_at = serializers.DateTimeField(allow_null=True)
    ended_at = serializers.DateTimeField(allow_null=True)
    stop_asked_at = serializers.DateTimeField(allow_null=True)
    ran_seconds = serializers.SerializerMethodField()
    cost = serializers.SerializerMethodField()
    usd_per_hour = serializers.DecimalField(max_digits=18, decimal_places=4)
    usd_at_limit = serializers.DecimalField(
        max_digits=18,
        decimal_places=2,
        allow_null=True,
        help_text="What earlier attempts cost, and the time limit of this or the next one; null once it ended.",
    )
    limit_seconds = serializers.IntegerField(
        allow_null=True, help_text="It begins anew each time that its queue lets it in."
    )
    limit_at = serializers.DateTimeField(
        allow_null=True,
        help_text="When its time limit ends it; null while it waits.",
    )
    limit_is_on_cluster = serializers.SerializerMethodField()
    again_of = serializers.IntegerField(source="again_of_id", allow_null=True)
    after = serializers.IntegerField(
        source="after_id",
        allow_null=True,
        help_text="The run that had to finish before this one was sent, or has to while it is `blocked`.",
    )
    after_name = serializers.CharField(
        source="after.name",
        default=None,
        allow_null=True,
        help_text="What that one's objects on the cluster are called.",
    )
    gpu_use = serializers.SerializerMethodField()
    why = serializers.SerializerMethodField()

    @extend_schema_field(WhySerializer(allow_null=True))
    def get_why(self, run: Run) -> Any:
        """Why it is where it is; null in a list without `why=true`, while it is sent without trouble, and once over."""
        found = self.context.get("reasons", {}).get(run.pk)
        return None if found is None else WhySerializer(found).data

    @extend_schema_field(RunUseSerializer(allow_null=True))
    def get_gpu_use(self, run: Run) -> Any:
        """How busy its GPUs are and were on the whole; null where it holds none and nothing is known of before."""
        now = self.context["now"]
        found = use_told(run.busy(now), run.overall_use(now))
        return None if found is None else RunUseSerializer(found).data

    @extend_schema_field(serializers.BooleanField())
    def get_limit_is_on_cluster(self, run: Run) -> bool:
        """Whether the cluster has this limit; until then it ends the run at the earlier one."""
        return not run.has_other_limit

    @extend_schema_field(serializers.IntegerField())
    def get_ran_seconds(self, run: Run) -> int:
        """How long it ran in all."""
        return round(run.ran(self.context["now"]).total_seconds())

    @extend_schema_field(serializers.CharField())
    def get_cost(self, run: Run) -> str:
        """USD so far."""
        return f"{run.cost(self.context['now']):.2f}"


class TimeLimitSerializer(StrictSerializer):
    """Another time limit of a run."""

    minutes = serializers.IntegerField(
        min_value=1,
        max_value=10**6,
        help_text="Within what the run's template allows.",
    )


class NewLimitSerializer(serializers.Serializer[Any]):
    """What another time limit makes of a run."""

    limit_seconds = serializers.IntegerField(source="seconds")
    ends_at = serializers.DateTimeField(
        allow_null=True,
        help_text="When it ends at the latest; null while it waits.",
    )
    usd_at_limit = serializers.DecimalField(max_digits=18, decimal_places=2)
    early_stops = serializers.CharField(
        help_text="What can stop it before, in a sentence; empty where nothing is known to."
    )


class RunPodSerializer(serializers.Serializer[Any]):
    """A pod of a run."""

    name = serializers.CharField()
    number = serializers.IntegerField(allow_null=True)
    word = serializers.CharField(help_text="Its state in a word.")
    node = serializers.CharField()
    gpus = serializers.IntegerField()
    started_at = serializers.DateTimeField(allow_null=True)
    restarts = serializers.IntegerField()
    ended_as = serializers.CharField(
        help_text="Such as `OOMKilled`; empty when it goes on or ended well."
    )


class AttemptSerializer(serializers.Serializer[Any]):
    """One time that a run ran."""

    number = serializers.IntegerField(source="attempt.number", help_text="From 1 on.")
    started_at = serializers.DateTimeField(source="attempt.started_at")
    ended_at = serializers.DateTimeField(source="attempt.ended_at", allow_null=True)
    sent_back = serializers.BooleanField(
        source="attempt.is_sent_back",
        help_text="Whether its queue stopped it and put the run back into the line.",
    )
    why = serializers.CharField(
        source="attempt.why",
        help_text="Why it ended; empty while it runs, and where the run ended with it.",
    )


class KeptLogSerializer(serializers.Serializer[Any]):
    """A pod of whose log the last lines are kept; `logs/?pod=&attempt=` has them."""

    name = serializers.CharField()
    number = serializers.IntegerField(allow_null=True)
    attempt = serializers.IntegerField(
        source="attempt_number",
        allow_null=True,
        help_text="Null for what ended before an attempt began.",
    )
    kept_at = serializers.DateTimeField()


class RunSerializer(RunShortSerializer):
    """A run with everything about it."""

    is_resumed = serializers.BooleanField(
        help_text="Whether it goes on from the last checkpoint of `again_of`."
    )
    can_change_limit = serializers.BooleanField(
        help_text="Whether `limit/` gives it another time limit."
    )
    submission = serializers.DictField()
    checkpoints = serializers.CharField(
        help_text="The folder of its checkpoints; empty without one."
    )
    manifests = serializers.ListField(child=serializers.DictField())
    attempts = AttemptSerializer(
        many=True,
        source="seen.attempts",
        help_text="Each time that it ran, the newest last.",
    )
    pods = RunPodSerializer(many=True, source="seen.pods")
    kept_logs = KeptLogSerializer(
        many=True,
        source="kept_pods",
        help_text="Pods of whose logs the last lines are kept, for when they are gone; the last attempt first.",
    )
    silent_since = serializers.DateTimeField(
        allow_null=True,
        source="seen.seen.silent_since",
        default=None,
        help_text="The cluster is silent since then.",
    )

    @extend_schema_field(WhySerializer(allow_null=True))
    def get_why(self, run: Any) -> Any:
        """Why it is where it is; null while it is sent without trouble, and once it is over."""
        found = run.seen.why
        return None if found is None else WhySerializer(found).data


class SkippedRunSerializer(serializers.Serializer[Run]):
    """A run that waited for another one."""

    id = serializers.IntegerField()
    title = serializers.CharField()
    name = serializers.CharField()


class StoppedRunSerializer(RunSerializer):
    """A run that is stopped, with what does not run for that."""

    skipped = SkippedRunSerializer(
        many=True,
        help_text="What waits for it, and for that in turn: skipped with it, unless it finishes before it is stopped.",
    )


class LogLineSerializer(serializers.Serializer[Any]):
    """One line; `place` orders the lines of a pod."""

    place = serializers.CharField()
    text = serializers.CharField()


class LogSerializer(serializers.Serializer[Any]):
    """Lines of a pod's log, oldest first."""

    pod = serializers.CharField()
    lines = LogLineSerializer(many=True)


class HeldGpusSerializer(serializers.Serializer[Any]):
    """GPUs of one flavor that a team has in a place; USD per GPU-hour."""

    flavor = serializers.CharField()
    product = serializers.CharField()
    device = serializers.CharField(
        help_text="What one of them is called: A100, or A100 1g.10gb slice."
    )
    gpus = serializers.IntegerField()
    borrow = serializers.IntegerField(
        help_text="So many more while other teams leave theirs idle."
    )
    per_node = serializers.IntegerField()
    memory = serializers.IntegerField(help_text="GB of one GPU, or of one slice of it.")
    is_slice = serializers.BooleanField(
        help_text="Whether they are MIG slices, which do not train together."
    )
    usd_per_gpu_hour = serializers.DecimalField(
        source="usd_per_hour", max_digits=18, decimal_places=4
    )
    is_spot = serializers.BooleanField()
    levels = serializers.ListField(
        child=serializers.CharField(),
        help_text="Levels of its topology, as node labels from the widest on, in which nodes can be together.",
    )
    driver = serializers.CharField(
        help_text="The oldest driver among its nodes; empty where none tells it."
    )
    cuda = serializers.CharField(
        help_text="Up to which CUDA all of its nodes run images; empty where none tells it."
    )


class OfferedSerializer(serializers.Serializer[Any]):
    """A template as a cluster offers it."""

    slug = serializers.CharField()
    missing = serializers.CharField(
        help_text="What the cluster lacks for it; empty when it can be used."
    )
    no_topology = serializers.CharField(
        help_text="Why it cannot keep its nodes close together there; empty when it can, where a flavor has `levels`."
    )


class RunPlaceSerializer(serializers.Serializer[Any]):
    """A namespace in which the caller may start runs."""

    tenancy = serializers.IntegerField()
    team = TeamNameSerializer()
    project = serializers.CharField()
    cluster = serializers.CharField()
    namespace = serializers.CharField()
    follows_git = serializers.BooleanField(
        help_text="The portal starts nothing on a cluster that follows Git."
    )
    flavors = HeldGpusSerializer(many=True)
    priorities = serializers.ListField(child=serializers.CharField())
    volumes = serializers.ListField(child=serializers.CharField())
    templates = OfferedSerializer(many=True)


class RunPlacesSerializer(serializers.Serializer[Any]):
    """Everywhere that the caller may start runs."""

    results = RunPlaceSerializer(many=True)
