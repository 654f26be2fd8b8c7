"""What may stand behind the question mark of an address: known names with values that fit; anything else is 400."""

from typing import TYPE_CHECKING, Any

from django.http import QueryDict
from rest_framework.exceptions import APIException, ErrorDetail, ValidationError
from rest_framework.permissions import BasePermission
from rest_framework.request import Request
from rest_framework.serializers import Serializer

from web.strict import NoQuery

if TYPE_CHECKING:  # the framework's views import this module through the settings
    from rest_framework.views import APIView


class BadQuery(APIException):
    """A parameter of the address is unknown, given twice or has a value that does not fit."""

    status_code = 400
    default_detail = "Look at the parameters named in errors."
    default_code = "bad_query"

    def __init__(self, errors: Any) -> None:
        super().__init__()
        self.errors = errors


class KnownQuery(BasePermission):
    """Reads a view's parameters into `view.asked` before anything else is done; every view has it by default."""

    def has_permission(self, request: Request, view: "APIView") -> bool:
        """Always True; raises BadQuery."""
        if request.method not in view.allowed_methods:
            # The view goes on to answer 405, whatever stands behind the question mark.
            view.asked = {}  # type: ignore[attr-defined]
            return True
        serializer = query_of(view)(data=_single_values(request.query_params))
        try:
            serializer.is_valid(raise_exception=True)
        except ValidationError as error:
            raise BadQuery(error.get_full_details()) from error
        view.asked = serializer.validated_data  # type: ignore[attr-defined]
        return True


def query_of(view: Any) -> type[Serializer[Any]]:
    """The serializer of the parameters that this action of the view takes."""
    found: type[Serializer[Any]] = getattr(view, "asks", {}).get(
        getattr(view, "action", None), NoQuery
    )
    return found


def _single_values(params: QueryDict) -> dict[str, str]:
    twice = [name for name, values in params.lists() if len(values) > 1]
    if twice:
        detail = ErrorDetail("Give it once.", "given_twice")
        raise BadQuery(
            ValidationError({name: [detail] for name in twice}).get_full_details()
        )
    return {name: value for name, value in params.items() if isinstance(value, str)}
