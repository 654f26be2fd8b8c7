"""What every endpoint of the API has in common."""

from collections.abc import Mapping
from typing import Any, ClassVar

from rest_framework.exceptions import NotAuthenticated
from rest_framework.request import Request
from rest_framework.serializers import Serializer
from rest_framework.viewsets import GenericViewSet

from accounts.authentication import IssuedToken
from accounts.credentials import Credential
from accounts.models import ApiToken, Team, User
from web.refusals import BadInput
from web.strict import NothingSerializer


class Endpoint(GenericViewSet[Any]):
    """A set of calls about one kind of thing.

    `asks` names the parameters that an action takes in its address; they are checked before the action runs and
    stand in `asked`. `keyed` actions need an Idempotency-Key, `guarded` ones If-Match, `bodyless` ones take no value
    and refuse one, `outside` ones may fail because an outside system did, `refuses_values` only read and have
    parameters that may name what is not there, `conflicting` ones only read and may not as things stand, `versioned`
    ones take the version that was seen in their body. `previews` are sent by POST and store nothing: a token that
    reads may make them, and they count as reading. `asking` names the changes that a token which only asks may make:
    none that is not named here; `running` names those that a token may make which only runs. `ordering` is the order
    of a paged list, one field.
    """

    # OPTIONS does nothing here, so that no answer's Allow names it.
    http_method_names = ("get", "head", "post", "put", "patch", "delete")
    asks: ClassVar[Mapping[str, type[Serializer[Any]]]] = {}
    keyed: ClassVar[frozenset[str]] = frozenset()
    guarded: ClassVar[frozenset[str]] = frozenset()
    bodyless: ClassVar[frozenset[str]] = frozenset()
    outside: ClassVar[frozenset[str]] = frozenset()
    refuses_values: ClassVar[frozenset[str]] = frozenset()
    conflicting: ClassVar[frozenset[str]] = frozenset()
    versioned: ClassVar[frozenset[str]] = frozenset()
    previews: ClassVar[frozenset[str]] = frozenset()
    asking: ClassVar[frozenset[str]] = frozenset()
    running: ClassVar[frozenset[str]] = frozenset()
    ordering: ClassVar[str] = "id"
    asked: Mapping[str, Any]

    @property
    def caller(self) -> User:
        """Who calls; raises NotAuthenticated for nobody."""
        if not isinstance(self.request.user, User):
            raise NotAuthenticated
        return self.request.user

    @property
    def token(self) -> ApiToken | None:
        """The personal token that the call came with; None for one that was issued elsewhere."""
        return self.request.auth if isinstance(self.request.auth, ApiToken) else None

    @property
    def credential(self) -> Credential:
        """What the call came with, for an answer that goes on after it."""
        auth = self.request.auth
        if isinstance(auth, IssuedToken):
            return Credential(
                self.caller.pk, until=auth.expires_at, identity=auth.identity
            )
        return Credential(self.caller.pk, token=self.token.pk if self.token else None)

    def check_sees_team(self, slug: str) -> None:
        """Let the slug of a team pass that the caller sees; raises BadInput for any other, there or not."""
        if not Team.objects.visible_to(self.caller).filter(slug=slug).exists():
            raise BadInput(
                "You see no team of this name.", code="no_such_team", field="team"
            )

    def body(
        self, serializer: type[Serializer[Any]], *, partial: bool = False
    ) -> dict[str, Any]:
        """The checked values of the body; raises ValidationError naming the fields at fault."""
        read = serializer(data=self.request.data, partial=partial)
        read.is_valid(raise_exception=True)
        return dict(read.validated_data)

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """Refuse a body where none is taken: a value that is ignored is believed to have counted."""
        super().initial(request, *args, **kwargs)
        if self.action in self.bodyless:
            self.body(NothingSerializer)

    def shown(self, row: Any, serializer: type[Serializer[Any]]) -> dict[str, Any]:
        """A row as the answer shows it."""
        return dict(serializer(row, context=self.get_serializer_context()).data)
