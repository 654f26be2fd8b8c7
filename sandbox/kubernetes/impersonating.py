"""Acting as somebody else: the ``Impersonate-…`` headers of those whose roles allow it."""

from starlette.datastructures import Headers

from sandbox.kubernetes.identity import Identity
from sandbox.kubernetes.rbac import Attributes, Authorizer
from sandbox.kubernetes.status import Refusal

USER, GROUP, UID = "impersonate-user", "impersonate-group", "impersonate-uid"


def impersonated(who: Identity, headers: Headers, authorizer: Authorizer) -> Identity:
    """Whom the caller acts as: 403 without the right, 500 for a group without a user."""
    user, groups = headers.get(USER, ""), headers.getlist(GROUP)
    if not user:
        if groups or headers.get(UID):
            text = (
                "requested [{Group  "
                + (groups or [""])[0]
                + "}] without impersonating a user"
            )
            raise Refusal(500, f"Internal Server Error: {text}", "InternalError")
        return who
    for resource, name in (("users", user), *(("groups", group) for group in groups)):
        if not authorizer.allowed(
            who, Attributes("impersonate", "", resource, name=name)
        )[0]:
            text = f'User "{who.user}" cannot impersonate resource "{resource}" in API group "" at the cluster scope'
            raise Refusal(
                403,
                f'{resource} "{name}" is forbidden: {text}',
                "Forbidden",
                {"name": name, "kind": resource},
            )
    return Identity(user, tuple(groups), headers.get(UID, ""))
