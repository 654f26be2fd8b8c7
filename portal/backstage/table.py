"""What Backstage is offered: calls of the API as steps of its scaffolder and as tools of its MCP server.

Each is one operation of the API's description, with a name, and a sentence for whoever chooses among them: a person
who writes a template, or a model. What it takes and gives is read from the description.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Action:
    """An operation under a name; `id_name` is what the id in its address is called, `page` the page of what it gives.

    `page_of` says where the answer has what the page's address names. `previews` are sent by POST and change nothing;
    `destructive` takes away what somebody may still use. `left_out` are parameters behind the ? that no action takes:
    an action has one answer, and no stream.
    """

    name: str
    operation: str
    title: str
    description: str
    id_name: str = ""
    page: str = ""
    page_of: tuple[str, ...] = ("id",)
    previews: bool = False
    destructive: bool = False
    left_out: frozenset[str] = frozenset()


# What an action takes whose name is all that the description says of it.
INPUTS = {
    "environment": "What its namespace is for. In production people decide whatever is asked for.",
    "project": "What its first project is called; it stands in the namespace's name.",
    "allocation": "The id of an allocation of list-allocations.",
    "cluster": "The name of a cluster of list-clusters, such as training-eastus.",
    "notebook": "The id of a notebook of list-notebooks.",
    "offering": "The key of an offering of list-offerings, such as gpus.",
    "place": "The tenancy of a place of list-places.",
    "profile": "The slug of a profile of list-profiles.",
    "purpose": "What it is for.",
    "request": "The id of a request of list-requests.",
    "run": "The id of a run of list-runs.",
    "team": "The slug of a team of list-teams, such as vision.",
    "template": "The slug of a template of list-templates.",
    "text": "The answer, as the approver reads it.",
    "title": "What people call it.",
    "until": "When it ends: RFC 3339 with a zone, such as 2026-12-24T18:00:00Z.",
    "values": "The template's parameters by name; list-templates says what each takes.",
}

ACTIONS = (
    Action(
        "who-am-i",
        "me",
        "Who am I?",
        "The person for whom Backstage calls, with their roles and teams in Quartermaster.",
    ),
    Action(
        "list-teams",
        "teams_list",
        "List my teams",
        "The teams that the person may see. Their slugs are the team in other actions.",
    ),
    Action(
        "list-groups",
        "directory_groups",
        "List groups that may become teams",
        "Groups of Entra ID that the person may bring on board, their own or those of a name, and why not the others.",
    ),
    Action(
        "preview-team",
        "teams_preview",
        "Preview bringing a team on board",
        "Says what would be made for a group of Entra ID, and what would be said to its first GPUs. Stores nothing.",
        previews=True,
    ),
    Action(
        "bring-team-on-board",
        "teams_create",
        "Bring a team on board",
        "Makes a group of Entra ID a team with a namespace on a cluster and, if wanted, asks for its first GPUs. "
        "Preview it first.",
        page="onboarding",
        page_of=("team", "slug"),
    ),
    Action(
        "show-onboarding",
        "teams_onboarding",
        "Show a team's coming on board",
        "How far a new team's namespace is: each of its objects, and what became of its first request.",
        id_name="team",
        page="onboarding",
        page_of=("team", "slug"),
    ),
    Action(
        "show-budgets",
        "teams_budgets_list",
        "Show a team's budgets",
        "A team's money (USD) and GPU-hours month by month: limit, held, spent, left.",
        id_name="team",
    ),
    Action(
        "show-costs",
        "costs_list",
        "Show a month's costs",
        "What a month costs by team, cost centre, project, kind of GPU or person, and what of it no work used.",
    ),
    Action(
        "list-offerings",
        "offerings_list",
        "List what can be requested",
        "Every offering with the JSON Schema of the spec that preview-request and create-request take.",
    ),
    Action(
        "list-choices",
        "offerings_options",
        "List the choices of an offering",
        "What a team may choose in each field of an offering's spec, and why not the rest.",
        id_name="offering",
    ),
    Action(
        "preview-request",
        "requests_preview_create",
        "Preview a request",
        "Says of a request before it is sent: is it automatic, who decides, what does it cost, what stands in its way? "
        "Stores nothing.",
        previews=True,
    ),
    Action(
        "create-request",
        "requests_create",
        "Create a request",
        "Requests GPUs or another offering for a team. A small request is approved at once; a large one waits for "
        "people and needs a reason. Preview it first; list-choices has the flavors and what else can be chosen.",
        page="request",
    ),
    Action(
        "list-requests",
        "requests_list",
        "List requests",
        "The requests that the person may see, with their states.",
    ),
    Action(
        "show-request",
        "requests_retrieve",
        "Show a request",
        "One request with everything about it: state, whose turn it is, the rules that judged it, decisions, cost.",
        id_name="request",
        page="request",
    ),
    Action(
        "answer-question",
        "requests_answer_create",
        "Answer an approver's question",
        "Answers the question that an approver asked about a request.",
        id_name="request",
        page="request",
    ),
    Action(
        "withdraw-request",
        "requests_withdraw_create",
        "Withdraw a request",
        "Takes back the person's own request while it waits for a decision.",
        id_name="request",
        page="request",
        destructive=True,
    ),
    Action(
        "preview-renewal",
        "requests_renew_preview_create",
        "Preview a renewal",
        "Says what would become of renewing what a request got. Stores nothing.",
        id_name="request",
        previews=True,
    ),
    Action(
        "renew-request",
        "requests_renew_create",
        "Renew what a request got",
        "Requests to keep it longer; judged like any request.",
        id_name="request",
        page="request",
    ),
    Action(
        "list-allocations",
        "allocations_list",
        "List allocations",
        "What the person's teams hold: GPUs and other offerings, until when, at what price.",
    ),
    Action(
        "preview-giving-back",
        "allocations_give_back_preview_create",
        "Preview giving an allocation back",
        "What giving GPUs or machines of an allocation back would change: number, cost, and what becomes of work.",
        id_name="allocation",
        previews=True,
    ),
    Action(
        "give-back",
        "allocations_give_back_create",
        "Give an allocation back",
        "Gives some or all of an allocation back before its end; what runs on it may be stopped.",
        id_name="allocation",
        destructive=True,
    ),
    Action(
        "list-places",
        "places",
        "List where work can run",
        "The namespaces of the person's teams, with the GPUs held there and the templates that their cluster runs. "
        "Their ids are the tenancy of a run and the place of a notebook.",
    ),
    Action(
        "list-templates",
        "templates",
        "List training templates",
        "Every template for a training run with the parameters that its values take.",
    ),
    Action(
        "preview-run",
        "runs_preview_create",
        "Preview a training run",
        "Says what a run would create, cost and wait for, and what stands in its way. Stores nothing.",
        previews=True,
    ),
    Action(
        "start-run",
        "runs_create",
        "Start a training run",
        "Starts a run from a template in a namespace of the person's team.",
        page="run",
    ),
    Action(
        "list-runs",
        "runs_list",
        "List training runs",
        "Training runs and other work that was started in Quartermaster, with their states.",
    ),
    Action(
        "show-run",
        "runs_retrieve",
        "Show a training run",
        "One run: why it waits or how it ended, its pods and its cost.",
        id_name="run",
        page="run",
    ),
    Action(
        "read-run-log",
        "runs_logs_retrieve",
        "Read the log of a training run",
        "The last lines that a pod of the run wrote; show-run names its pods. Kept for some weeks after its end.",
        id_name="run",
        left_out=frozenset({"follow"}),
    ),
    Action(
        "stop-run",
        "runs_stop_create",
        "Stop a training run",
        "Ends a run: it may still save a checkpoint, then its GPUs are free.",
        id_name="run",
        page="run",
        destructive=True,
    ),
    Action(
        "list-profiles",
        "place_profiles",
        "List notebook profiles",
        "The profiles of notebooks in a namespace: their options, price, and whether one would start now.",
        id_name="place",
    ),
    Action(
        "start-notebook",
        "notebooks_launch",
        "Start a notebook",
        "Starts a notebook from a profile in a namespace of the person's team.",
        id_name="place",
        page="notebook",
    ),
    Action(
        "list-notebooks",
        "notebooks_list",
        "List notebooks",
        "The notebook servers of the person's teams, with their states.",
    ),
    Action(
        "stop-notebook",
        "notebooks_stop_create",
        "Stop a notebook",
        "Stops a notebook: what it has in memory is lost, its volumes stay.",
        id_name="notebook",
        page="notebook",
        destructive=True,
    ),
    Action(
        "explain-work",
        "work_of_team",
        "Explain a team's work",
        "Everything that a team has on the clusters, whoever started it, each with the reason why it waits or runs.",
        id_name="team",
    ),
    Action(
        "list-clusters",
        "clusters_list",
        "List clusters",
        "The clusters of the fleet and whether they answer.",
    ),
    Action(
        "show-queues",
        "queues_of_cluster",
        "Show a cluster's queues",
        "Who waits on a cluster and who runs; other teams' jobs as sums.",
        id_name="cluster",
    ),
)
