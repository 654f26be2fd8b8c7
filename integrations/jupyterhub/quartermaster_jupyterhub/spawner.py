"""A KubeSpawner that starts what the portal allows, in the team's namespace."""

import json
from http import HTTPStatus
from typing import Any

from kubernetes_asyncio.client import ApiException
from kubespawner import KubeSpawner
from traitlets import HasTraits, default

from quartermaster_jupyterhub.asking import Answer, Refusal, answer_for, profiles
from quartermaster_jupyterhub.choosing import Refused, check
from quartermaster_jupyterhub.matching import matches

WEEK = 7 * 24 * 3600
EXCEEDED = "exceeded quota: "
FULL = (
    "The namespace {namespace} has no room for this server now, by its quota {quota}. Stop another server or job of "
    "your team, or start this again when some have ended."
)
# Lists that KubeSpawner replaces by the profile's, although the hub's own entries count, too.
MERGED = ("tolerations",)


class PortalMixin(HasTraits):
    """Put before a KubeSpawner: profiles come from the portal, which is asked again when a server starts.

    The namespace comes with the profile. `enable_user_namespaces` stays off: the hub then watches each team's namespace
    with the rights that it has there, and makes no namespaces. Where it is on, `user_namespace_template` counts for
    nothing but servers that have no profile, which there are none of.
    """

    @default("profile_list")
    def _profile_list_default(self) -> Any:
        return profiles

    @default("start_timeout")
    def _start_timeout_default(self) -> int:
        """A week: the pod of a server waits in its team's queue (Kueue), and a hub ends what has not started by then.

        The default of a minute would take a server out of the line that it had stood in.
        """
        return WEEK

    @default("options_from_form")
    def _options_from_form_default(self) -> Any:
        return self._checked_options_from_form

    async def _checked_options_from_form(
        self, formdata: dict[str, list[str]]
    ) -> dict[str, str]:
        """What the form chose, refused beside the form already where the portal would not allow it."""
        options: dict[str, str] = self._options_from_form(formdata)
        await self._check(options)
        return options

    async def load_user_options(self) -> None:
        """Take over a choice that the portal allows now; raises Refusal for any other."""
        answer = await self._check(self.user_options)
        before, asks = self.namespace, self.profile_list
        # What was checked is what is taken over, whatever the portal would answer a moment later.
        self.profile_list = answer.profiles
        try:
            await super().load_user_options()
        finally:
            self.profile_list = asks
        if self.namespace != before:
            # Its volume was seen in another namespace.
            self._pvc_exists = False
        # A hub that restarts while this waits in a queue has to know in which namespace.
        self.orm_spawner.state = self.get_state()
        self.db.commit()

    async def poll(self) -> Any:
        """As KubeSpawner; a server that waited while its hub restarted is given up.

        Nobody waits for it any more, and it would start one day without its person.
        """
        status = await super().poll()
        if status is None and self._start_future is None:
            pods = self.pod_reflector.pods
            pod = pods.get(f"{self.namespace}/{self.pod_name}")
            if pod is not None and pod["status"]["phase"] == "Pending":
                await self.stop(now=True)
                return 1
        return status

    async def _make_create_pod_request(self, pod: Any, request_timeout: float) -> Any:
        """As KubeSpawner; what the namespace's quota refuses is said with Kubernetes' numbers, and never ends a hub."""
        try:
            return await super()._make_create_pod_request(pod, request_timeout)
        except ApiException as error:
            _, is_full, quota = _message(error).partition(EXCEEDED)
            if error.status != HTTPStatus.FORBIDDEN or not is_full:
                raise
            refused = Refused(
                HTTPStatus.CONFLICT, FULL.format(namespace=self.namespace, quota=quota)
            )
            raise Refusal(refused) from error

    async def _check(self, options: Any) -> Answer:
        answer = await answer_for(self, afresh=True)
        try:
            typed = check(
                options or {},
                answer.profiles,
                is_away=answer.is_away,
                reason=answer.reason,
            )
            for one in typed:
                if not await matches(one.pattern, one.value):
                    raise Refused(400, one.message)
        except Refused as refused:
            raise Refusal(refused) from refused
        return answer

    def _apply_overrides(self, spawner_override: dict[str, Any]) -> None:
        """As KubeSpawner, but for lists of which the hub's own entries count beside a profile's."""
        own = {
            name: _listed(getattr(self, name))
            for name in MERGED
            if name in spawner_override
        }
        super()._apply_overrides(spawner_override)
        for name, before in own.items():
            added = [one for one in _listed(getattr(self, name)) if one not in before]
            setattr(self, name, [*before, *added])


class PortalSpawner(PortalMixin, KubeSpawner):
    """KubeSpawner with the portal before it."""


def _message(error: ApiException) -> str:
    """What the API server says of a refusal."""
    try:
        return str(json.loads(error.body)["message"])
    except (TypeError, ValueError, KeyError):
        return str(error.body)


def _listed(value: Any) -> list[Any]:
    """KubeSpawner takes a list, or a mapping whose keys are for sorting."""
    return (
        [value[name] for name in sorted(value)]
        if isinstance(value, dict)
        else list(value)
    )
