"""How the API shows profiles of notebook servers, and what it takes for one."""

from typing import Any

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from accounts.api import PersonSerializer
from notebooks.models import ProfileVersion
from notebooks.profile_desk.actions import MAX_REASON
from notebooks.profile_desk.kept import Offered
from notebooks.profiles.document import to_json
from notebooks.profiles.states import State
from web.documents import LARGEST
from web.strict import Integer, StrictSerializer, Text

LARGEST_NUMBER = 2_000_000_000
STATES = [(each.value, each.words) for each in State]
NUMBER_HELP = "The `number` that was looked at: refused when there is a newer one."


class ProfileSerializer(serializers.Serializer[Offered]):
    """A profile that people can choose."""

    slug = serializers.CharField(source="document.slug")
    title = serializers.CharField(source="document.title")
    help = serializers.CharField(source="document.help")
    number = serializers.IntegerField(help_text="The version that people get.")
    document = serializers.SerializerMethodField()
    is_deprecated = serializers.SerializerMethodField()
    reason = serializers.CharField(
        help_text="Why people should not choose it any more; empty for most."
    )
    successor = serializers.CharField(
        help_text="The slug of what to choose instead; empty where there is nothing."
    )

    @extend_schema_field(OpenApiTypes.OBJECT)
    def get_document(self, one: Offered) -> dict[str, Any]:
        """What a server gets, and what people choose in it."""
        return to_json(one.document)

    def get_is_deprecated(self, one: Offered) -> bool:
        """Whether people are advised against it."""
        return bool(one.reason)


class ProfilesSerializer(serializers.Serializer[Any]):
    """All profiles that people can choose, in their order."""

    results = ProfileSerializer(many=True)


class ProfileVersionSerializer(serializers.Serializer[ProfileVersion]):
    """A version of a profile."""

    number = serializers.IntegerField()
    reason = serializers.CharField(source="why")
    by = PersonSerializer()
    at = serializers.DateTimeField()
    yaml = serializers.CharField(source="text")


class ProblemPlaceSerializer(serializers.Serializer[Any]):
    """Something that keeps a profile from being published."""

    place = serializers.CharField(
        help_text="Where in the document; empty for the whole of it."
    )
    detail = serializers.CharField()


class KeptProfileSerializer(serializers.Serializer[Any]):
    """A profile as platform leads maintain it."""

    slug = serializers.CharField()
    state = serializers.ChoiceField(choices=STATES, source="profile.state")
    number = serializers.IntegerField(
        help_text="The newest version's, which may be a draft."
    )
    published = serializers.IntegerField(
        source="profile.published",
        allow_null=True,
        help_text="The version that people get.",
    )
    reason = serializers.CharField(
        source="profile.reason", help_text="Why it is deprecated or retired."
    )
    successor = serializers.CharField(
        source="profile.successor.slug", allow_null=True, default=None
    )
    yaml = serializers.CharField(
        source="newest.text",
        help_text="The newest document, to be changed and sent back.",
    )
    missing = ProblemPlaceSerializer(
        many=True, help_text="What keeps the newest version from being published."
    )
    versions = ProfileVersionSerializer(many=True, help_text="Newest first.")


class SaveProfileSerializer(StrictSerializer):
    """A profile as JSON or as YAML, one of the two, and why."""

    document = serializers.DictField(required=False)
    yaml = Text(required=False, max_length=2 * LARGEST, trim_whitespace=False)
    seen = Integer(
        required=False, min_value=0, max_value=LARGEST_NUMBER, help_text=NUMBER_HELP
    )
    reason = Text(required=False, allow_blank=True, max_length=MAX_REASON)

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """Raises ValidationError unless the profile is said once."""
        if ("document" in attrs) is ("yaml" in attrs):
            raise serializers.ValidationError(
                {"yaml": "Send the document or its YAML, one of the two."}
            )
        return attrs


class PublishProfileSerializer(StrictSerializer):
    """Which version was looked at."""

    seen = Integer(
        required=False, min_value=1, max_value=LARGEST_NUMBER, help_text=NUMBER_HELP
    )


class EndProfileSerializer(StrictSerializer):
    """Why a profile goes, and what to choose instead."""

    reason = Text(max_length=MAX_REASON)
    successor = Text(required=False, allow_blank=True, max_length=40)


class ProfilesYamlSerializer(serializers.Serializer[Any]):
    """The profiles as one file, which is KubeSpawner's `profile_list`."""

    yaml = serializers.CharField()


class ProfilesYamlInSerializer(StrictSerializer):
    """KubeSpawner's `profile_list`."""

    yaml = Text(max_length=2 * LARGEST, trim_whitespace=False)
    reason = Text(required=False, allow_blank=True, max_length=MAX_REASON)
