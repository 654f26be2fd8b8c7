"""The recorded steps that the sandbox does not answer alike, each with its reason: the list may only shrink."""

from collections.abc import Mapping

_PODS = "only the pods of Jobs are scheduled and run"
_LATE = (
    "the recorded controller had not come round yet; the sandbox's are always in time"
)
_AHEAD = (
    "recorded before the controllers had come round; the sandbox's are always in time"
)
_GRACE = (
    "pods of the sandbox end at once, without a grace period: nobody is seen stopping"
)
_AGAIN = "who waits is looked at whenever something changed; Kueue looks when quota has become free"
_WATCH = "a watch that the recorder cut off: its events came at times of their own"
_V1BETA1 = "v1beta1 is listed but not served: the portal writes v1beta2"
_ORDER = "events have names of their own, and so another order"
_NODES = "which pod gets which of its nodes follows from their names of chance"
# What names decide is alike now and then: it says nothing of the sandbox.
BY_CHANCE = frozenset({_ORDER, _NODES})

NOT_ALIKE: Mapping[str, Mapping[int, str]] = {
    "02b-ssa-semantics": {32: _LATE, 33: _LATE},
    "03-list-watch": {
        16: "server-side tables are for kubectl's screen",
        17: "no CustomResourceDefinitions: the Kueue kinds are built in",
    },
    "03b-watch-bookmark": {
        0: "a bookmark a minute: 70 s are too long for a test",
        3: "the cache of the recorded server was older than version 5; the sandbox's begins after its own objects",
    },
    "05-resourcequota": {19: "events have names of their own", 20: _PODS},
    "08-delete": {
        **dict.fromkeys(
            (1, 4),
            "pods have names of their own; what admission added counts as their maker's",
        ),
        30: "the one cause is given once, not twice",
        **dict.fromkeys(
            (3, 12), "the sandbox's garbage collector has already done its work"
        ),
    },
    "12-nodes": {
        3: "no node controller: a cordon sets no taint",
        7: "no node controller: a cordon sets no taint",
        **dict.fromkeys((4, 5, 6), _PODS),
        9: "nodes of the sandbox are always ready",
    },
    "09-kueue-objects": {27: _V1BETA1, 28: _V1BETA1, 29: _V1BETA1, 39: _LATE},
}

TRAINING_NOT_ALIKE: Mapping[str, Mapping[int, str]] = {
    "30-jobset": {38: _GRACE, **dict.fromkeys((45, 56, 67), _AGAIN), 74: _WATCH},
    "30b-jobset-child-jobs": {16: _WATCH},
    "32-visibility": {60: "APIServices are not served"},
    "33-queueing-strategies": {5: _AGAIN, 7: _AGAIN, 34: _WATCH, 69: _WATCH},
    "34a-borrow-reclaim": {
        **dict.fromkeys((19, 20, 21, 22, 23, 24, 25, 32), _GRACE),
        **dict.fromkeys(
            (36, 48), "an event for each victim, and none for the second look"
        ),
        42: _WATCH,
    },
    "34b-priority-preemption": {
        **dict.fromkeys((4, 12, 14, 21, 34, 35), _GRACE),
        **dict.fromkeys((29, 30), "recorded in the second in which the pod started"),
        36: _WATCH,
    },
    "39a-stop-policies": {
        **dict.fromkeys((17, 18, 19, 20, 57), _GRACE),
        66: _AGAIN,
        68: _WATCH,
    },
    "37b-maximum-execution-time": {
        **dict.fromkeys(
            (9, 10, 11),
            "recorded in the second in which the time was over, its pods stopping",
        ),
        **dict.fromkeys((13, 15), _GRACE),
        23: _WATCH,
    },
    "38-topology": {
        **dict.fromkeys(
            (8, 87),
            "nodes of another machine, whose labels and disks are not the sandbox's",
        ),
        **dict.fromkeys((27, 70), _NODES),
        **dict.fromkeys((85, 86), _AHEAD),
        109: _WATCH,
    },
    "40-logs-and-events": {
        14: _AHEAD,
        28: "events are served in v1 only",
        40: "the recorded node agent took no notice of `previous`; the kubelet's source refuses it, as in 11-pod-logs",
        49: "the recorded Kueue saw the pods fail before it saw the Job fail",
        63: "the one cause is given once, and the template is not spelt out",
        79: _ORDER,
    },
}
