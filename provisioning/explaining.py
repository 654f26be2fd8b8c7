"""What a cluster's refusal or silence means, what to do about it, and whether it is tried again. Pure.

The classes are those that an API server gives (by status, reason and message; the status alone would mislead).
"""

from dataclasses import dataclass

AGAIN = "It is tried again by itself."
NOT = "It is not tried again before that, or before something else is wanted of it."
LATER = "It is looked at again every five minutes, and at once when you have it tried again."


@dataclass(frozen=True)
class Explanation:
    """What a failure means and what to do, a sentence each; `again` is whether trying goes on by itself soon.

    None means that it does not go on by itself at all.
    """

    means: str
    do: str
    again: bool | None

    def __str__(self) -> str:
        return f"{self.means} {self.do} {NOT if self.again is None else AGAIN if self.again else LATER}"


# In this order: the first whose words stand in the message. A status of 500 is of two sorts, and 403 of many.
CLASSES: tuple[tuple[tuple[str, ...], Explanation], ...] = (
    (("exists and is not ours",), Explanation(
        "Something of this name is there that the portal did not make, and it never touches such things.",
        "A platform lead renames or removes it, or chooses another name.", again=False)),
    (("being terminated", "is being deleted", "being deleted"), Explanation(
        "The namespace or the object is being deleted right now.",
        "Wait until it is gone; if it takes long, a finalizer holds it.", again=True)),
    (("exceeded quota", "failed quota"), Explanation(
        "A quota on the cluster leaves no room for it.",
        "A platform lead raises that quota, or something in it is given back.", again=False)),
    (("attempting to grant RBAC permissions",), Explanation(
        "The portal may not give rights that it does not hold itself.",
        "A platform lead applies the roles of deploy/kubernetes anew.", again=False)),
    (("denied the request",), Explanation(
        "A policy of the cluster (an admission webhook) refuses it.",
        "Its message names the rule; a platform lead changes the rule or the setting.", again=False)),
    (("failed calling webhook",), Explanation(
        "A helper of the cluster, most often Kueue, does not answer, and nothing can be made without it.",
        "A platform lead looks at Kueue's pods.", again=True)),
    (("not declared in schema", "strict decoding error", "unknown field", "failed to create typed patch"), Explanation(
        "The cluster does not know a field: its Kubernetes or Kueue is older or newer than the portal expects.",
        "A platform lead compares the versions with the portal's requirements.", again=False)),
    (("cannot change roleRef",), Explanation(
        "Which role a binding gives cannot be changed on the cluster.",
        "A platform lead deletes the binding; the portal makes it anew.", again=False)),
    (("immutable",), Explanation(
        "A field of it cannot be changed once it is made.",
        "A platform lead deletes the object if nothing depends on it; the portal makes it anew.", again=False)),
    (("Apply failed with", "conflict with"), Explanation(
        "Another manager holds a field that the portal wants.",
        "A platform lead finds out who it is; two should not write the same.", again=False)),
    (("object has been modified",), Explanation(
        "Somebody changed it in the same moment.", "There is nothing to do.", again=True)),
    (("after writing",), Explanation(
        "The cluster took what was sent and dropped a part of it.",
        "A platform lead looks for a webhook that changes objects, or an older version of Kueue.", again=False)),
    (("kubeconfig",), Explanation(
        "The portal cannot reach the cluster, because its kubeconfig is missing or cannot be read.",
        "A platform lead puts the file into its folder.", again=False)),
    (("401",), Explanation(
        "The cluster does not know the portal any more: its token has expired or was taken back.",
        "A platform lead renews the kubeconfig.", again=False)),
    (("403",), Explanation(
        "The portal may not do this on the cluster.",
        "A platform lead applies the roles of deploy/kubernetes anew.", again=False)),
    (("404",), Explanation(
        "The cluster does not have this kind of object, or not the namespace it belongs in.",
        "A platform lead checks that Kueue is installed and the namespace is there.", again=False)),
    (("409", "already exists"), Explanation(
        "Something of this name came in between.", "There is nothing to do.", again=True)),
    (("422", "400"), Explanation(
        "The cluster finds a value in it that it does not take.",
        "Its message names the field; a platform lead corrects the setting.", again=False)),
    (("410",), Explanation("What was read was too old.", "There is nothing to do.", again=True)),
    (("429",), Explanation("The cluster is busy and asks for patience.", "There is nothing to do.", again=True)),
    (("does not answer", "timed out", "Timeout", "refused", "Connection", "answer is cut"), Explanation(
        "The cluster does not answer.", "What runs there goes on; a platform lead looks if it lasts.", again=True)),
    (("The portal failed",), Explanation(
        "This is a mistake of the portal, not of the cluster.", "Its operators find it in the log.", again=False)),
)  # fmt: skip
UNKNOWN = Explanation(
    "The cluster refuses it for a reason the portal does not know.",
    "Its message says which; a platform lead can look it up.",
    again=False,
)
SILENT = Explanation(
    "The cluster has a problem of its own.", "A platform lead looks at it if it lasts.", again=True
)

PARKED = Explanation(
    "Something about it ends the process that works on it: most often there was not enough memory.",
    "A platform lead finds the reason in the workers' logs, and has it tried again when it is gone.",
    again=None,
)


def explain(message: str, *, will_try_again: bool) -> Explanation:
    """What a failure means, from its message; `will_try_again` is what the pass decided, and always holds."""
    for words, explanation in CLASSES:
        if any(word in message for word in words):
            return Explanation(explanation.means, explanation.do, again=will_try_again)
    return SILENT if will_try_again else UNKNOWN
