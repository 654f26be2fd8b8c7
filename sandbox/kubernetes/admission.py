"""What stands between a decoded body and the store: defaults, admission, validation, rights."""

import secrets
from collections.abc import Mapping
from typing import Any

from sandbox.kubernetes import (
    job_webhook,
    jobset_webhook,
    kueue_webhooks,
    limitrange,
    ownership,
    pod_security,
    pod_webhook,
    quota,
    scopes,
    status,
    validation,
    volcano_webhook,
)
from sandbox.kubernetes.calls import Target
from sandbox.kubernetes.clock import timestamp
from sandbox.kubernetes.defaults import apply_defaults
from sandbox.kubernetes.defaults_pods import DEFAULT_ACCOUNT, admit_pod, qos_class
from sandbox.kubernetes.identity import Identity
from sandbox.kubernetes.kinds import KUEUE, RBAC_GROUP, VOLCANO, Kind, builtin
from sandbox.kubernetes.ownership import Writer
from sandbox.kubernetes.policies import Attempt, Policies
from sandbox.kubernetes.quantities import add
from sandbox.kubernetes.rbac import MASTERS, Attributes, Authorizer
from sandbox.kubernetes.status import Refusal
from sandbox.kubernetes.store import Obj, Store

NAMESPACES = builtin("v1", "Namespace")
QUOTAS = builtin("v1", "ResourceQuota")
_LIMIT_RANGES = builtin("v1", "LimitRange")
_ACCOUNTS = builtin("v1", "ServiceAccount")
_PRIORITY_CLASSES = builtin("scheduling.k8s.io/v1", "PriorityClass")
_BINDINGS = frozenset({"RoleBinding", "ClusterRoleBinding"})


class Admission:
    """The admission chain of one store, in the order of the API server."""

    def __init__(
        self, store: Store, authorizer: Authorizer, queueing: str = KUEUE
    ) -> None:
        self._has_volcano = queueing == VOLCANO
        self._store = store
        self._authorizer = authorizer
        self._policies = Policies(store)
        # Whether JobSet's own webhook has its say.
        self.knows_jobset = True

    def check_namespace(self, kind: Kind, target: Target) -> None:
        """Refuse new content in a namespace that is missing (404) or being deleted (403)."""
        if not kind.namespaced:
            return
        namespace = self._store.get(NAMESPACES, "", target.namespace)
        if namespace is None:
            raise status.not_found(NAMESPACES, target.namespace)
        if "deletionTimestamp" in namespace["metadata"]:
            place = target.namespace
            text = f"unable to create new content in namespace {place} because it is being terminated"
            message = f"namespace {place} is being terminated"
            cause = {
                "reason": "NamespaceTerminating",
                "message": message,
                "field": "metadata.namespace",
            }
            raise status.forbidden(kind, target.name, text, [cause])

    def defaulted(self, kind: Kind, obj: dict[str, Any], uid: str) -> dict[str, Any]:
        """A copy of the object as it would be stored; refuses quantities that cannot be read."""
        refusal = validation.check_quantities(kind, obj)
        if refusal:
            raise refusal
        return apply_defaults(kind, obj, uid=uid)

    def mutated(
        self, kind: Kind, obj: dict[str, Any], target: Target
    ) -> dict[str, Any]:
        """A new object after the mutating webhooks."""
        if self._has_volcano:
            return volcano_webhook.born(self._store, kind, obj, target.namespace)
        self._ask_kueue(kind, target.namespace, "mutate")
        if kind.kind == "Pod":
            return pod_webhook.born(obj, target.namespace)
        if kind.kind not in job_webhook.QUEUED:
            return obj
        known = (
            jobset_webhook.born(obj)
            if kind.kind == "JobSet" and self.knows_jobset
            else obj
        )
        new = job_webhook.born(self._store, known, target.namespace)
        return (
            jobset_webhook.spelt_out(new)
            if kind.kind == "JobSet" and new != obj
            else new
        )

    def limited(self, kind: Kind, obj: dict[str, Any]) -> dict[str, Any]:
        """A new pod with the defaults of its namespace's LimitRanges and its token; may change the object in place."""
        if kind.kind == "Pod":
            limitrange.fill_in(obj, self._ranges(obj))
            account = self._account(kind, obj)
            value, preemption = self._priority(kind, obj)
            volume = f"kube-api-access-{secrets.token_hex(3)[:5]}"
            admit_pod(
                obj, account, token_volume=volume, priority=value, preemption=preemption
            )
            obj["status"] = {**obj["status"], "qosClass": qos_class(obj["spec"])}
        return obj

    def _account(self, kind: Kind, obj: Obj) -> Obj:
        """The account that a pod runs as; 403 when it is not there."""
        namespace = obj["metadata"]["namespace"]
        name = obj["spec"].get("serviceAccountName") or DEFAULT_ACCOUNT
        found = self._store.get(_ACCOUNTS, namespace, name)
        if found is None:
            text = f'error looking up service account {namespace}/{name}: serviceaccount "{name}" not found'
            raise status.forbidden(kind, obj["metadata"].get("name", ""), text)
        return found

    def _priority(self, kind: Kind, obj: dict[str, Any]) -> tuple[int, str]:
        """Value and preemption policy of a pod's class, or of the default one; 403 when it is not there."""
        classes = [*self._store.objects(_PRIORITY_CLASSES, None)]
        spec, name = obj["spec"], obj["metadata"]["name"]
        if not spec.get("priorityClassName"):
            default = next((one for one in classes if one.get("globalDefault")), None)
            if default is None:
                return self._given(kind, obj, 0, ""), "PreemptLowerPriority"
            spec["priorityClassName"] = default["metadata"]["name"]
        wanted = spec["priorityClassName"]
        found = next(
            (one for one in classes if one["metadata"]["name"] == wanted), None
        )
        if found is None:
            raise status.forbidden(
                kind, name, f"no PriorityClass with name {wanted} was found"
            )
        value = self._given(kind, obj, int(found.get("value") or 0), wanted)
        return value, str(found.get("preemptionPolicy") or "PreemptLowerPriority")

    @staticmethod
    def _given(kind: Kind, obj: dict[str, Any], value: int, wanted: str) -> int:
        """The computed value; 403 for a pod that brings another one."""
        given = obj["spec"].get("priority")
        if given is not None and given != value:
            text = (
                f"the integer value of priority ({given}) must not be provided in pod spec; "
                f"priority admission controller computed {value} from the given PriorityClass name"
            )
            raise status.forbidden(kind, obj["metadata"]["name"], text)
        return value

    def _ranges(self, obj: Obj) -> list[dict[str, Any]]:
        return [
            dict(item)
            for item in self._store.objects(_LIMIT_RANGES, obj["metadata"]["namespace"])
        ]

    def validated(
        self, kind: Kind, obj: dict[str, Any], live: Obj | None, subresource: str = ""
    ) -> None:
        """Refuse what is invalid (422) or what a webhook denies (403, or 400 where it gives no code)."""
        check_update = validation.check_update
        refusal = (
            check_update(kind, obj, dict(live))
            if live
            else validation.check_create(kind, obj)
        )
        refusal = refusal or (
            self._denied_by_volcano(kind, obj, live, subresource)
            if self._has_volcano
            else self._denied_by_kueue(kind, obj, live)
        )
        if refusal:
            raise refusal

    def asked(self, kind: Kind, obj: Obj, subresource: str) -> None:
        """Refuse a write (500) that a webhook is asked about which does not answer, also one that changes nothing."""
        if not subresource:
            self._ask_kueue(kind, obj["metadata"].get("namespace", ""), "validate")

    def _ask_kueue(self, kind: Kind, namespace: str, verb: str) -> None:
        if self._has_volcano:
            return
        refusal = kueue_webhooks.unanswered(self._store, kind, namespace, verb)
        if refusal:
            raise refusal

    def _denied_by_kueue(
        self, kind: Kind, obj: dict[str, Any], live: Obj | None
    ) -> Refusal | None:
        refusal: Refusal | None = None
        if kind.kind in job_webhook.QUEUED:
            refusal = (
                job_webhook.change_refusal(obj, live)
                if live
                else job_webhook.birth_refusal(obj)
            )
        if refusal is None and kind.kind == "JobSet" and self.knows_jobset:
            change, birth = jobset_webhook.change_refusal, jobset_webhook.birth_refusal
            refusal = change(obj, dict(live)) if live else birth(obj)
        return refusal

    def _denied_by_volcano(
        self, kind: Kind, obj: dict[str, Any], live: Obj | None, subresource: str
    ) -> Refusal | None:
        if subresource:
            return None
        if live:
            return volcano_webhook.change_refusal(self._store, kind, obj, dict(live))
        return volcano_webhook.birth_refusal(self._store, kind, obj)

    def check_end(self, kind: Kind, live: Obj) -> None:
        """Refuse the deletion of what a webhook keeps (400)."""
        refusal = (
            volcano_webhook.end_refusal(self._store, kind, live)
            if self._has_volcano
            else None
        )
        if refusal:
            raise refusal

    def judged(self, attempt: Attempt) -> None:
        """Refuse what Pod Security or an admission policy of the cluster denies."""
        pod = (
            attempt.new
            if attempt.operation == "CREATE" and attempt.kind.kind == "Pod"
            else None
        )
        if pod is not None:
            namespace = self._store.get(NAMESPACES, "", pod["metadata"]["namespace"])
            words = pod_security.refusal(namespace, pod["spec"]) if namespace else ""
            if words:
                raise status.forbidden(attempt.kind, pod["metadata"]["name"], words)
        self._policies.check(attempt)

    def warnings(self, kind: Kind, obj: Obj) -> dict[str, str]:
        """The headers in which Pod Security warns of a new pod, or of what makes pods."""
        spec = pod_security.spec_of(obj)
        namespace = (
            self._store.get(NAMESPACES, "", obj["metadata"].get("namespace", ""))
            if spec
            else None
        )
        said = pod_security.warning(namespace, spec) if namespace else ""
        return {"warning": said} if said else {}

    def charged(
        self, kind: Kind, obj: dict[str, Any], live: Obj | None, *, dry_run: bool
    ) -> None:
        """Refuse what a LimitRange or a quota forbids (403); otherwise count it in the quota's status."""
        namespace = obj["metadata"].get("namespace")
        if not namespace:
            return
        if live is None and kind.kind in {"Pod", "PersistentVolumeClaim"}:
            refusal = limitrange.refusal(kind, obj, self._ranges(obj))
            if refusal:
                raise refusal
        quotas = [dict(item) for item in self._store.objects(QUOTAS, namespace)]
        if not quotas:
            return
        refusal = quota.refusal(kind, obj, quotas, dict(live) if live else None)
        if refusal:
            raise refusal
        if live is None and not dry_run:
            for item in quotas:
                self._count(item, kind, obj)

    def _count(self, item: dict[str, Any], kind: Kind, obj: dict[str, Any]) -> None:
        state = item.get("status") or {}
        before = state.get("used")
        if not before:
            return
        after = {
            key: value
            for key, value in quota.used(
                before, [(kind, obj)] if scopes.covers(item, kind, obj) else []
            ).items()
            if value != "0"
        }
        if not after:
            return
        total = {
            **before,
            **{key: add(before[key], value) for key, value in after.items()},
        }
        changed = {**item, "status": {**state, "used": total}}
        writer = Writer("kube-apiserver", "Update", "status")
        claims = ownership.update(QUOTAS, item, changed, writer, timestamp())
        self._store.put(QUOTAS, ownership.with_claims(changed, claims))

    def check_rights(self, kind: Kind, obj: Obj, who: Identity) -> None:
        """Refuse roles and bindings that would hand out more than the caller holds (403)."""
        if kind.group != RBAC_GROUP or MASTERS in who.groups:
            return
        namespace = obj["metadata"].get("namespace", "")
        if kind.kind in _BINDINGS:
            rules = self._bound_rules(kind, obj["roleRef"], namespace, who)
        elif self._may(
            who, "escalate", kind.plural, namespace, obj["metadata"]["name"]
        ):
            return
        else:
            rules = obj.get("rules") or ()
        missing = self._authorizer.missing_rights(who, rules, namespace)
        if missing:
            raise self._escalation(kind, obj, who, missing)

    def _bound_rules(
        self, kind: Kind, ref: Mapping[str, str], namespace: str, who: Identity
    ) -> Any:
        plural = "clusterroles" if ref.get("kind") == "ClusterRole" else "roles"
        if self._may(who, "bind", plural, namespace, ref.get("name", "")):
            return ()
        rules = self._authorizer.rules_of(ref, namespace)
        if rules is None:
            raise status.not_found(kind, ref.get("name", ""))
        return rules

    def _may(
        self, who: Identity, verb: str, plural: str, namespace: str, name: str
    ) -> bool:
        what = Attributes(verb, RBAC_GROUP, plural, namespace=namespace, name=name)
        return self._authorizer.allowed(who, what)[0]

    @staticmethod
    def _escalation(kind: Kind, obj: Obj, who: Identity, missing: str) -> Refusal:
        groups = " ".join(f'"{group}"' for group in who.all_groups)
        text = f'user "{who.user}" (groups=[{groups}]) is attempting to grant RBAC permissions not currently held:'
        return status.forbidden(kind, obj["metadata"]["name"], f"{text}\n{missing}")
