"""Pod Security: what a namespace's labels refuse of new pods, and warn of, in the words of its admission plug-in.

Of the standards these checks are here: host namespaces, hostPath, host ports, privileged, capabilities, and all that
`restricted` adds. AppArmor, SELinux, seccomp `Unconfined`, /proc mounts, sysctls, Windows and probes are not looked at.
"""

import json
from collections.abc import Callable, Mapping
from typing import Any

from sandbox.kubernetes.causes import items, part
from sandbox.kubernetes.store import Obj

LABEL = "pod-security.kubernetes.io/"
LEVELS = ("privileged", "baseline", "restricted")
BASIC_CAPABILITIES = frozenset(
    {
        *(
            "AUDIT_WRITE",
            "CHOWN",
            "DAC_OVERRIDE",
            "FOWNER",
            "FSETID",
            "KILL",
            "MKNOD",
            "NET_BIND_SERVICE",
            "SETFCAP",
        ),
        *("SETGID", "SETPCAP", "SETUID", "SYS_CHROOT"),
    }
)
VOLUMES = frozenset(
    {
        "name",
        "configMap",
        "csi",
        "downwardAPI",
        "emptyDir",
        "ephemeral",
        "image",
        "persistentVolumeClaim",
        "projected",
        "secret",
    }
)
PROFILES = ("RuntimeDefault", "Localhost")
Spec = Mapping[str, Any]
# What a check finds: its reason, and in brackets where; empty when the pod is as it should be.
Check = Callable[[Spec], str]


def refusal(namespace: Obj, spec: Spec) -> str:
    """Why the namespace refuses a pod of this spec; empty when it does not."""
    found = _violations(namespace, "enforce", spec)
    return f"violates PodSecurity {found}" if found else ""


def warning(namespace: Obj, spec: Spec) -> str:
    """The Warning header for a pod, or for what makes pods, of this spec; empty for none."""
    found = _violations(namespace, "warn", spec)
    if not found:
        return ""
    text = f"would violate PodSecurity {found}"
    return f"299 - {json.dumps(text, ensure_ascii=False)}"


def _violations(namespace: Obj, mode: str, spec: Spec) -> str:
    labels = namespace["metadata"].get("labels") or {}
    level = labels.get(f"{LABEL}{mode}", LEVELS[0])
    version = labels.get(f"{LABEL}{mode}-version", "latest")
    found = [said for check in CHECKS.get(level, ()) if (said := check(spec))]
    return f'"{level}:{version}": {", ".join(found)}' if found else ""


def _containers(spec: Spec) -> list[dict[str, Any]]:
    return [
        *items(spec, "initContainers"),
        *items(spec, "containers"),
        *items(spec, "ephemeralContainers"),
    ]


def _security(one: Spec) -> dict[str, Any]:
    return part(one, "securityContext")


def _of(names: list[str], what: str, must: str) -> str:
    """`container "a" must …`, or `containers "a", "b" must …`."""
    quoted = ", ".join(f'"{name}"' for name in names)
    return f"{what}{'' if len(names) == 1 else 's'} {quoted} {must}"


def _capabilities(spec: Spec) -> str:
    bad: list[str] = []
    added: list[str] = []
    for one in _containers(spec):
        more = [
            n
            for n in part(_security(one), "capabilities").get("add") or ()
            if n not in BASIC_CAPABILITIES
        ]
        if more:
            bad.append(one["name"])
            added += [name for name in more if name not in added]
    if not bad:
        return ""
    said = ", ".join(f'"{name}"' for name in sorted(added))
    must = f"must not include {said} in securityContext.capabilities.add"
    return f"non-default capabilities ({_of(bad, 'container', must)})"


def _host_namespaces(spec: Spec) -> str:
    found = [
        f"{name}=true"
        for name in ("hostNetwork", "hostPID", "hostIPC")
        if spec.get(name)
    ]
    return f"host namespaces ({', '.join(found)})" if found else ""


def _host_paths(spec: Spec) -> str:
    found = [
        volume["name"] for volume in items(spec, "volumes") if "hostPath" in volume
    ]
    return f"hostPath volumes ({_of(found, 'volume', '').rstrip()})" if found else ""


def _host_ports(spec: Spec) -> str:
    found: dict[str, list[str]] = {}
    for one in _containers(spec):
        ports = [
            str(port["hostPort"])
            for port in items(one, "ports")
            if port.get("hostPort")
        ]
        if ports:
            found[one["name"]] = ports
    if not found:
        return ""
    numbers = [number for ports in found.values() for number in ports]
    uses = "uses" if len(found) == 1 else "use"
    must = f"{uses} hostPort{'' if len(numbers) == 1 else 's'} {', '.join(numbers)}"
    return f"hostPort ({_of(list(found), 'container', must)})"


def _privileged(spec: Spec) -> str:
    found = [
        one["name"] for one in _containers(spec) if _security(one).get("privileged")
    ]
    must = "must not set securityContext.privileged=true"
    return f"privileged ({_of(found, 'container', must)})" if found else ""


def _escalation(spec: Spec) -> str:
    found = [
        one["name"]
        for one in _containers(spec)
        if _security(one).get("allowPrivilegeEscalation") is not False
    ]
    must = "must set securityContext.allowPrivilegeEscalation=false"
    return (
        f"allowPrivilegeEscalation != false ({_of(found, 'container', must)})"
        if found
        else ""
    )


def _unrestricted_capabilities(spec: Spec) -> str:
    kept: list[str] = []
    adding: list[str] = []
    added: list[str] = []
    for one in _containers(spec):
        rules = part(_security(one), "capabilities")
        if "ALL" not in (rules.get("drop") or ()):
            kept.append(one["name"])
        more = [name for name in rules.get("add") or () if name != "NET_BIND_SERVICE"]
        if more:
            adding.append(one["name"])
            added += [name for name in more if name not in added]
    said = []
    if kept:
        said.append(
            _of(kept, "container", 'must set securityContext.capabilities.drop=["ALL"]')
        )
    if adding:
        names = ", ".join(f'"{name}"' for name in sorted(added))
        said.append(
            _of(
                adding,
                "container",
                f"must not include {names} in securityContext.capabilities.add",
            )
        )
    return f"unrestricted capabilities ({'; '.join(said)})" if said else ""


def _volume_types(spec: Spec) -> str:
    bad: dict[str, str] = {}
    for volume in items(spec, "volumes"):
        kinds = [name for name in volume if name not in VOLUMES]
        if kinds:
            bad[volume["name"]] = kinds[0]
    if not bad:
        return ""
    kinds = sorted(set(bad.values()))
    said = ", ".join(f'"{kind}"' for kind in kinds)
    uses = "uses" if len(bad) == 1 else "use"
    must = f"{uses} restricted volume type{'' if len(kinds) == 1 else 's'} {said}"
    return f"restricted volume types ({_of(list(bad), 'volume', must)})"


def _lacking(spec: Spec, has: Callable[[dict[str, Any]], bool | None]) -> list[str]:
    """The containers that neither they nor the pod set as they must; `has` is None for what says nothing."""
    whole = has(_security(spec))
    return [
        one["name"]
        for one in _containers(spec)
        if not (whole if (own := has(_security(one))) is None else own)
    ]


def _must_of_pod_or(names: list[str], must: str) -> str:
    return f"pod or {_of(names, 'container', must)}"


def _as_root(spec: Spec) -> str:
    found = _lacking(spec, lambda context: context.get("runAsNonRoot"))
    must = "must set securityContext.runAsNonRoot=true"
    return f"runAsNonRoot != true ({_must_of_pod_or(found, must)})" if found else ""


def _user_zero(spec: Spec) -> str:
    said = []
    if _security(spec).get("runAsUser") == 0:
        said.append("pod must not set securityContext.runAsUser=0")
    found = [
        one["name"] for one in _containers(spec) if _security(one).get("runAsUser") == 0
    ]
    if found:
        said.append(_of(found, "container", "must not set securityContext.runAsUser=0"))
    return f"runAsUser=0 ({', '.join(said)})" if said else ""


def _seccomp(spec: Spec) -> str:
    def has(context: dict[str, Any]) -> bool | None:
        kind = part(context, "seccompProfile").get("type")
        return None if kind is None else kind in PROFILES

    found = _lacking(spec, has)
    must = 'must set securityContext.seccompProfile.type to "RuntimeDefault" or "Localhost"'
    return f"seccompProfile ({_must_of_pod_or(found, must)})" if found else ""


# In the order in which their words are joined: by the checks' names there.
_SHARED: tuple[Check, ...] = (_host_namespaces, _host_paths, _host_ports, _privileged)
CHECKS: Mapping[str, tuple[Check, ...]] = {
    "baseline": (_capabilities, *_SHARED),
    "restricted": (
        *(_escalation, _unrestricted_capabilities, *_SHARED),
        *(_volume_types, _as_root, _user_zero, _seccomp),
    ),
}


def spec_of(obj: Mapping[str, Any]) -> dict[str, Any]:
    """The pod spec of a pod, or of what makes pods; empty for every other kind."""
    spec = part(obj, "spec")
    return spec if obj.get("kind") == "Pod" else part(part(spec, "template"), "spec")
