"""How the API shows templates of runs, and what it takes for one."""

from typing import Any

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from accounts.api import PersonSerializer
from web.documents import LARGEST
from web.strict import Integer, StrictSerializer, Text
from workloads.template_desk.actions import LONGEST_WHY
from workloads.template_desk.models import TemplateVersion
from workloads.templates.library import ANY_CAPACITY, ON_DEMAND, SPOT
from workloads.templates.parameters import Parameter, Type, Value


class ParameterSerializer(serializers.Serializer[Any]):
    """What a template asks for."""

    name = serializers.CharField()
    type = serializers.ChoiceField(choices=[each.value for each in Type])
    title = serializers.CharField()
    help = serializers.CharField()
    default = serializers.SerializerMethodField()
    minimum = serializers.IntegerField()
    maximum = serializers.IntegerField()
    choices = serializers.ListField(child=serializers.CharField())
    is_needed = serializers.BooleanField()
    is_fixed = serializers.BooleanField(help_text="It is always its default.")
    variable = serializers.CharField(
        help_text="Where the program finds it; empty for one of the shape's."
    )

    @extend_schema_field(OpenApiTypes.ANY)
    def get_default(self, one: Parameter) -> Value | None:  # type: ignore[override]
        """What it is when it is not given; null where it has to be, or may be left out."""
        return one.default


class TemplateClaimSerializer(serializers.Serializer[Any]):
    """A volume that every run of the template mounts."""

    name = serializers.CharField()
    path = serializers.CharField()
    read_only = serializers.BooleanField(source="is_read_only")  # type: ignore[assignment]


class RunTemplateSerializer(serializers.Serializer[Any]):
    """A template of runs; what it brings along holds where a run says nothing else."""

    slug = serializers.CharField()
    title = serializers.CharField()
    help = serializers.CharField()
    shape = serializers.SerializerMethodField(
        help_text="The shipped template whose objects it makes."
    )
    version = serializers.IntegerField(
        help_text="0 for one as it came with the product."
    )
    kind = serializers.CharField(
        help_text="The kind of object that it makes, as `Kind.group/version`."
    )
    accepts_files = serializers.BooleanField(
        help_text="Whether a script, a repository and volumes go with it."
    )
    parameters = ParameterSerializer(many=True)
    variables = serializers.DictField(child=serializers.CharField())
    claims = TemplateClaimSerializer(many=True)
    repository = serializers.ListField(
        child=serializers.CharField(),
        allow_null=True,
        help_text="Address and revision of its program.",
    )
    priority = serializers.CharField(help_text="Empty for the place's own.")
    capacity = serializers.ChoiceField(choices=[ANY_CAPACITY, SPOT, ON_DEMAND])
    gpu_memory = serializers.IntegerField(help_text="GB that one GPU needs; 0 for any.")

    @extend_schema_field(serializers.CharField())
    def get_shape(self, one: Any) -> str:
        """A shipped one is its own."""
        return str(one.shape or one.slug)


class RunTemplatesSerializer(serializers.Serializer[Any]):
    """All templates."""

    results = RunTemplateSerializer(many=True)


class TemplateVersionSerializer(serializers.Serializer[TemplateVersion]):
    """A version of a template; one that is not offered took it back."""

    number = serializers.IntegerField()
    is_offered = serializers.BooleanField()
    reason = serializers.CharField(source="why")
    by = PersonSerializer()
    at = serializers.DateTimeField()
    yaml = serializers.CharField(source="text")


class KeptTemplateSerializer(serializers.Serializer[Any]):
    """A template as platform leads keep it; `number` is 0 while it is as it came with the product."""

    slug = serializers.CharField()
    number = serializers.IntegerField()
    is_offered = serializers.BooleanField()
    yaml = serializers.CharField(
        help_text="The document that counts, to be changed and sent back."
    )
    template = RunTemplateSerializer(
        allow_null=True, help_text="Null while nobody can start a run of it."
    )
    versions = TemplateVersionSerializer(many=True, help_text="Newest first.")


class KeepTemplateSerializer(StrictSerializer):
    """A template as JSON or as YAML, one of the two, and why."""

    document = serializers.DictField(required=False)
    yaml = Text(required=False, max_length=2 * LARGEST, trim_whitespace=False)
    seen = Integer(
        required=False,
        min_value=0,
        max_value=2_000_000_000,
        help_text="The `number` that it was changed from: refused when there is a newer one.",
    )
    reason = Text(
        required=False, allow_blank=True, max_length=LONGEST_WHY, source="why"
    )

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """Raises ValidationError unless the template is said once."""
        if ("document" in attrs) is ("yaml" in attrs):
            raise serializers.ValidationError(
                {"yaml": "Send the document or its YAML, one of the two."}
            )
        return attrs


class TakeBackTemplateSerializer(StrictSerializer):
    """Why a template is offered no longer."""

    seen = Integer(required=False, min_value=0, max_value=2_000_000_000)
    reason = Text(
        required=False, allow_blank=True, max_length=LONGEST_WHY, source="why"
    )


class TemplatesYamlSerializer(serializers.Serializer[Any]):
    """The platform team's own templates as one file."""

    yaml = serializers.CharField()


class TemplatesYamlInSerializer(StrictSerializer):
    """A file of templates, or one template."""

    yaml = Text(max_length=2 * LARGEST, trim_whitespace=False)
    reason = Text(
        required=False, allow_blank=True, max_length=LONGEST_WHY, source="why"
    )
