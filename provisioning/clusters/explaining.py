"""What a refusal or silence means, what to do about it, and whether it is tried again. Pure.

The classes are those that an API server gives (by status, reason and message; the status alone would mislead), those of
a Git host, and what the portal finds out itself. Names of teams and hosts stand in every message, so a class is known
by how a message begins, or by words with a space between or before them, which no name has.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

NOTHING_TO_DO = "There is nothing to do."
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


Classes = tuple[tuple[re.Pattern[str], Explanation], ...]


def _any(*beginnings: str) -> re.Pattern[str]:
    return re.compile("|".join(beginnings), re.DOTALL)


def _server(*words: str) -> re.Pattern[str]:
    """An answer of the API server, which begins with its status, that has one of these words."""
    return re.compile(rf"\d{{3}} .*(?:{'|'.join(map(re.escape, words))})", re.DOTALL)


def _host(*words: str) -> re.Pattern[str]:
    """Where a repository lies, and then one of these."""
    return re.compile(rf"(?:\S+|the repository) (?:{'|'.join(words)})", re.DOTALL)


# In this order: the first that a message matches. A status of 500 is of two sorts, and 403 of many.
OF_CLUSTERS: Classes = (
    (
        _any(".* and is not ours; it was not touched"),
        Explanation(
            "Something of this name is there that the portal did not make, and it never touches such things.",
            "A platform lead renames or removes it, or chooses another name.",
            again=False,
        ),
    ),
    (
        _any(
            r"\d{3} .*(?:being terminated|being deleted)",
            "[A-Z][A-Za-z]+ [^ ]+ is being deleted",
        ),
        Explanation(
            "The namespace or the object is being deleted right now.",
            "Wait until it is gone; if it takes long, a finalizer holds it.",
            again=True,
        ),
    ),
    (
        _server("exceeded quota", "failed quota"),
        Explanation(
            "A quota on the cluster leaves no room for it.",
            "A platform lead raises that quota, or something in it is given back.",
            again=False,
        ),
    ),
    (
        _server("attempting to grant RBAC permissions"),
        Explanation(
            "The portal may not give rights that it does not hold itself.",
            "A platform lead applies the roles of deploy/kubernetes anew.",
            again=False,
        ),
    ),
    (
        _server("denied the request"),
        Explanation(
            "A policy of the cluster (an admission webhook) refuses it.",
            "Its message names the rule; a platform lead changes the rule or the setting.",
            again=False,
        ),
    ),
    (
        _server("failed calling webhook"),
        Explanation(
            "A helper of the cluster, most often Kueue or Volcano, does not answer; nothing can be made without it.",
            "A platform lead looks at its pods.",
            again=True,
        ),
    ),
    (
        _server(
            "not declared in schema",
            "strict decoding error",
            "unknown field",
            "failed to create typed patch",
        ),
        Explanation(
            "The cluster does not know a field: its Kubernetes, Kueue or Volcano is older or newer than the portal "
            "expects.",
            "A platform lead compares the versions with the portal's requirements.",
            again=False,
        ),
    ),
    (
        _server("cannot change roleRef"),
        Explanation(
            "Which role a binding gives cannot be changed on the cluster.",
            "A platform lead deletes the binding; the portal makes it anew.",
            again=False,
        ),
    ),
    (
        _server(" immutable"),
        Explanation(
            "A field of it cannot be changed once it is made.",
            "A platform lead deletes the object if nothing depends on it; the portal makes it anew.",
            again=False,
        ),
    ),
    (
        _server("Apply failed with", "conflict with"),
        Explanation(
            "Another manager holds a field that the portal wants.",
            "A platform lead finds out who it is; two should not write the same.",
            again=False,
        ),
    ),
    (
        _server("object has been modified"),
        Explanation(
            "Somebody changed it in the same moment.",
            NOTHING_TO_DO,
            again=True,
        ),
    ),
    # An object, and the path of what it lost.
    (
        _any(r"[A-Z][A-Za-z]+ [^ ]+: \."),
        Explanation(
            "The cluster took what was sent and dropped a part of it.",
            "A platform lead looks for a webhook that changes objects, or an older version of Kueue or Volcano.",
            again=False,
        ),
    ),
    (
        _any(
            "The kubeconfig leads to another cluster",
            "This API server is registered as ",
        ),
        Explanation(
            "The kubeconfig does not lead to the cluster that the portal knows by this name, so "
            "nothing is written there.",
            "A platform lead mends the file, or accepts the other cluster on its page.",
            again=False,
        ),
    ),
    (
        _any("The cluster shows no namespace kube-system"),
        Explanation(
            "The cluster answers, and does not show what every cluster has: it has just "
            "started, or is not what it seems.",
            "There is nothing to do; a platform lead looks if it lasts.",
            again=True,
        ),
    ),
    (
        _any("The kubeconfig ", "cannot use the kubeconfig:", "not inside a cluster:"),
        Explanation(
            "The portal cannot reach the cluster, because its kubeconfig is missing or cannot be read.",
            "A platform lead puts the file into its folder.",
            again=False,
        ),
    ),
    (
        _any("401 "),
        Explanation(
            "The cluster does not know the portal any more: its token has expired or was taken back.",
            "A platform lead renews the kubeconfig.",
            again=False,
        ),
    ),
    (
        _any("403 "),
        Explanation(
            "The portal may not do this on the cluster.",
            "A platform lead applies the roles of deploy/kubernetes anew.",
            again=False,
        ),
    ),
    (
        _any("404 "),
        Explanation(
            "The cluster does not have this kind of object, or not the namespace it belongs in.",
            "A platform lead checks that Kueue or Volcano is installed and the namespace is there.",
            again=False,
        ),
    ),
    (
        _any("409 "),
        Explanation(
            "Something of this name came in between.",
            NOTHING_TO_DO,
            again=True,
        ),
    ),
    (
        _any("4(?:22|00) "),
        Explanation(
            "The cluster finds a value in it that it does not take.",
            "Its message names the field; a platform lead corrects the setting.",
            again=False,
        ),
    ),
    (
        _any("410 "),
        Explanation("What was read was too old.", NOTHING_TO_DO, again=True),
    ),
    (
        _any("429 "),
        Explanation(
            "The cluster is busy and asks for patience.",
            NOTHING_TO_DO,
            again=True,
        ),
    ),
    # A call that ended without an answer begins with what was called.
    (
        _any("[A-Z]+ /", r"[^ ]+ does not answer\."),
        Explanation(
            "The cluster does not answer.",
            "What runs there goes on; a platform lead looks if it lasts.",
            again=True,
        ),
    ),
    (
        _any("(?:Kueue|Volcano) .* is too old:", "(?:Kueue|Volcano) is not installed:"),
        Explanation(
            "A queue of the portal's would not mean there what it says.",
            "A platform lead installs the version that its message names.",
            again=False,
        ),
    ),
    (
        _any("(?:Flux|Argo CD) keeps "),
        Explanation(
            "Another program applies this object, and two that write the same undo each other.",
            "A platform lead has this cluster delivered to by Git, or takes the object out of that repository.",
            again=False,
        ),
    ),
    (
        _any("The portal failed "),
        Explanation(
            "This is a mistake of the portal, not of the cluster.",
            "Its operators find it in the log.",
            again=False,
        ),
    ),
)
OF_REPOSITORIES: Classes = (
    (
        _host(
            "does not take the push: .*(?:protected|rule violation|not allowed to push|TF402455)"
        ),
        Explanation(
            "The branch is protected: nobody pushes to it.",
            "A platform lead lets the portal's account push there, or has changes go through pull requests.",
            again=False,
        ),
    ),
    (
        _host("does not take the push: "),
        Explanation(
            "The Git host takes no such commit: a hook or a rule of the repository stands in the way.",
            "Its message says which; whoever looks after the repository changes the rule.",
            again=False,
        ),
    ),
    (
        _host(
            "does not accept the credentials",
            "and the portal do not accept each other by SSH",
            "answered 401 to a pull request",
        ),
        Explanation(
            "The Git host does not accept the portal's credentials: they have expired or were taken back.",
            "A platform lead renews the credentials' file.",
            again=False,
        ),
    ),
    (
        _host(
            "answered 403 to a pull request",
            "answered 403:",
            "may not be written to by the portal",
        ),
        Explanation(
            "The portal's credentials do not allow it in this repository.",
            "A platform lead gives its account the right to write, and to open pull requests if "
            "changes go through them.",
            again=False,
        ),
    ),
    (
        _any("There is no repository at ", r"[^ ]+ answered 404 to a pull request"),
        Explanation(
            "The Git host shows the portal no such repository: it is not there, or the credentials do not open it.",
            "A platform lead compares the address, and what the credentials are for.",
            again=False,
        ),
    ),
    (
        _any(
            r"[^ ]+ answered \d{3} to a pull request",
            "There is no branch .* that a pull request could go to",
        ),
        Explanation(
            "The Git host takes no such pull request.",
            "A platform lead looks whether the branch is there that the cluster follows, and "
            "pull requests are allowed.",
            again=False,
        ),
    ),
    (
        _any(r"Pull request \d+ was closed"),
        Explanation(
            "Somebody decided against it where the change was proposed.",
            "Ask there why; it goes on when the pull request is opened again or something else is wanted.",
            again=False,
        ),
    ),
    (
        _any("The Git credentials ", "The credentials hold no "),
        Explanation(
            "The credentials for the repository are missing or cannot be read.",
            "A platform lead puts the file into its folder.",
            again=False,
        ),
    ),
    (
        _any(r"The key of [^ ]+ is not known"),
        Explanation(
            "The portal cannot tell the Git host from one that only says it is.",
            "A platform lead puts the host's line into the credentials' .known_hosts file.",
            again=False,
        ),
    ),
    (
        _host(
            "is called at port ",
            "is not on the internet ",
            "sends on to another address",
        ),
        Explanation(
            "The portal may not call this address.",
            "A platform lead corrects the address, or allows the host by QM_GIT_HOSTS_ALLOWED.",
            again=False,
        ),
    ),
    (
        _host(
            "was written to by somebody else at the same moment",
            "is locked by another writer",
        ),
        Explanation(
            "Somebody wrote to the repository at the same moment.",
            NOTHING_TO_DO,
            again=True,
        ),
    ),
    (
        _any(r"It is out of the repository \("),
        Explanation(
            "Flux and Argo CD delete no namespace that may have disks in it.",
            "An administrator of the cluster deletes it when nobody needs them.",
            again=False,
        ),
    ),
    (
        _host(
            "cannot be (?:reached|found)",
            r"answered \d{3}\.",
            "gave (?:no|an) answer that ",
        ),
        Explanation(
            "The Git host does not answer as it should.",
            "What runs on the cluster goes on; a platform lead looks if it lasts.",
            again=True,
        ),
    ),
    (
        _host(r"answered \d{3}:"),
        Explanation(
            "Under this address is something else than a repository.",
            "A platform lead corrects the address.",
            again=False,
        ),
    ),
)
UNKNOWN = Explanation(
    "It is refused for a reason the portal does not know.",
    "Its message says which; a platform lead can look it up.",
    again=False,
)
SILENT = Explanation(
    "The cluster has a problem of its own.",
    "A platform lead looks at it if it lasts.",
    again=True,
)

PARKED = Explanation(
    "Something about it ends the process that works on it: most often there was not enough memory.",
    "A platform lead finds the reason in the workers' logs, and has it tried again when it is gone.",
    again=None,
)
# What has not failed and counts once others have done their part, by the reason of its condition.
WAITING: Mapping[str, str] = {
    "WaitingForMerge": "The change counts once its pull request is merged. Whoever looks after the repository merges "
    "it or closes it. It is looked at again by itself.",
    "WaitingForSync": "The commit counts once Flux or Argo CD has applied it. If that takes long, a platform lead "
    "looks at them. It is looked at again by itself.",
}


def explain(message: str, *, will_try_again: bool) -> Explanation:
    """What a failure means, from its message; `will_try_again` is what the pass decided, and always holds."""
    for beginning, explanation in (*OF_CLUSTERS, *OF_REPOSITORIES):
        if beginning.match(message):
            return Explanation(explanation.means, explanation.do, again=will_try_again)
    return SILENT if will_try_again else UNKNOWN
