"""The quota chain over the API."""

from typing import Any

from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.endpoints import Endpoint
from capacity.chain.links import Layer, Question
from capacity.chain.words import age
from capacity.subscriptions.pools import Catalogue
from fleet.models import Cluster
from insights.quota_chain.asking import MAX_GPUS, spaces_of
from insights.quota_chain.drawing import bars
from insights.quota_chain.gathering import chain_of
from web.refusals import BadInput
from web.strict import StrictSerializer


class ChainQuery(StrictSerializer):
    """What is asked of the chain."""

    flavor = serializers.SlugField(help_text="A kind of GPU of the cluster.")
    gpus = serializers.IntegerField(min_value=1, max_value=MAX_GPUS, default=1)
    namespace = serializers.CharField(
        required=False,
        default="",
        help_text="One of the team's namespaces there; empty for any team.",
    )
    question = serializers.ChoiceField(
        choices=[each.value for each in Question],
        default=Question.GRANT.value,
        help_text="grant: whether so many more can be granted; start: whether a pod with so many starts now.",
    )


class ChainLinkSerializer(serializers.Serializer[Any]):
    """One limit of the chain, in GPUs."""

    layer = serializers.ChoiceField(
        source="link.layer", choices=[each.value for each in Layer]
    )
    name = serializers.CharField(
        source="link.name", help_text="What Azure or Kubernetes calls it."
    )
    words = serializers.CharField(source="link.layer.words")
    limit = serializers.IntegerField(source="link.limit")
    used = serializers.IntegerField(source="link.used")
    room = serializers.IntegerField(
        source="link.room",
        allow_null=True,
        help_text="How many more it lets through; null where it limits nothing.",
    )
    detail = serializers.CharField(source="link.detail")
    seen_at = serializers.DateTimeField(
        source="link.seen_at",
        allow_null=True,
        help_text="Null for what the portal itself keeps.",
    )
    age = serializers.SerializerMethodField(
        help_text="How old it is where it is older than it may be; else empty."
    )
    stops = serializers.IntegerField(
        source="order",
        allow_null=True,
        help_text="1 for the link that stops the ask first; null where it does not.",
    )

    def get_age(self, bar: Any) -> str:
        """In words."""
        return age(bar.link, self.context["now"])


class ChainSerializer(serializers.Serializer[Any]):
    """The chain of a kind of GPU, and its answer."""

    cluster = serializers.CharField()
    flavor = serializers.CharField()
    gpus = serializers.IntegerField()
    namespace = serializers.CharField()
    question = serializers.ChoiceField(choices=[each.value for each in Question])
    fits = serializers.BooleanField()
    sentence = serializers.CharField()
    then = serializers.CharField(help_text="What would stop it next.")
    advice = serializers.CharField()
    links = ChainLinkSerializer(
        many=True, help_text="From the subscription down to the pod."
    )


class ChainEndpoint(Endpoint):
    """From the subscription down to the pod: what stops more GPUs."""

    queryset = Cluster.objects.all()
    serializer_class = ChainSerializer
    lookup_field = "name"
    lookup_value_converter = "slug"
    asks = {"retrieve": ChainQuery}
    refuses_values = frozenset({"retrieve"})

    @extend_schema(operation_id="quota_chain", responses=ChainSerializer)
    def retrieve(self, request: Request, name: str) -> Response:
        """What stops so many GPUs more of a kind on a cluster, the tightest link first.

        Told from what was read of Azure and from the portal's copy of the cluster: neither is asked.
        """
        cluster, asked, now = self.get_object(), self.asked, timezone.now()
        known = Catalogue.of([cluster])
        flavor = next(
            (one for one in known.flavors_of(cluster) if one.name == asked["flavor"]),
            None,
        )
        if flavor is None:
            raise BadInput(
                f"{cluster.name} has no kind of GPU {asked['flavor']}.",
                code="no_such_flavor",
                field="flavor",
            )
        tenancy = None
        if asked["namespace"]:
            spaces = {one.namespace: one for one in spaces_of(cluster, self.caller)}
            if asked["namespace"] not in spaces:
                raise BadInput(
                    f"You have no namespace {asked['namespace']} on {cluster.name}.",
                    code="no_such_namespace",
                    field="namespace",
                )
            tenancy = spaces[asked["namespace"]]
        question, chain = (
            Question(asked["question"]),
            chain_of(flavor, tenancy, known, now=now),
        )
        answer = chain.answer(asked["gpus"], question)
        shown = {
            "cluster": cluster.name,
            **asked,
            "fits": answer.fits,
            "sentence": answer.sentence,
            "then": answer.then,
            "advice": answer.advice,
            "links": bars(chain.links(question), asked["gpus"]),
        }
        return Response(
            ChainSerializer(
                shown, context={**self.get_serializer_context(), "now": now}
            ).data
        )
