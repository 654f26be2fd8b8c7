"""What the names in docs/reference mean: the sentences that the code has no place for."""

from collections.abc import Mapping

ABOUT_ADDRESSES = """\
All of them begin with `/api/v1/`. [The API](api.md) says what holds for every call; bodies and answers
are in [openapi.yaml](openapi.yaml), and to be tried out at `/api/docs/`."""

ABOUT_WEBHOOKS = """\
What [webhooks](../how-to/start-automation-by-webhooks.md) are sent. Each is a POST of JSON with `type`, `timestamp`
(when it happened) and `data`, which has the fields below as they were at that moment. Times are UTC, money is USD.
Fields may be added; none changes its meaning. Reasons, comments and people are not in it: [the API](api.md) tells more
to whoever may read it there. The same stands in [openapi.yaml](openapi.yaml) under `webhooks`.

What a renewal keeps is there already: it is told as `request.approved`, and no `allocation.ready` follows."""

WEBHOOK_SUBJECTS = {
    "request": "`request.…`",
    "allocation": "`allocation.…`",
    "run": "`run.ended`",
    "webhook": "`webhook.test`",
}

ABOUT_QM = """\
What `qm` can do, as `qm COMMAND --help` tells it, too. How to begin:
[Bring a team on board](../how-to/bring-a-team-on-board.md),
[Ask for GPUs from the command line](../how-to/ask-from-the-command-line.md) and
[Run a training job from the command line](../how-to/train-from-the-command-line.md).

RUN is a run's number, its name, or how its name begins where only one does. N is a request's number, by
which what it gave is renewed and given back, too. `--json` prints the answer of
[the API](api.md) on stdout; messages are on stderr."""

QM_VARIABLES = (
    (
        "`QM_URL`",
        "The portal's address without a path, in place of the stored one. A stored token goes to its own portal alone.",
    ),
    ("`QM_TOKEN`", "The token, in place of the stored one."),
    (
        "`XDG_CONFIG_HOME`",
        "Where `quartermaster/config.toml` lies; `~/.config` otherwise.",
    ),
    (
        "`NO_COLOR`",
        "Set: no colour. There is none where stdout is no terminal, either.",
    ),
    ("`REQUESTS_CA_BUNDLE`", "A PEM file with the authorities to trust."),
)

ABOUT_SETTINGS = """\
Everything that differs between installations comes from the environment. The portal reads it once, when it starts, and
refuses to start when a required variable is missing or makes no sense.

A secret may lie in a file instead: put files named like the variables in small letters (`qm_secret_key`) into a
folder and name the folder in `QM_SECRETS_DIR`. Lists and objects are written as JSON. Rates are calls per `s`, `min`
or `h`."""

SETTINGS: Mapping[str, str] = {
    "secret_key": "Signs sessions and forms and seals the addresses and secrets of channels: 50 or more random "
    "characters. Whoever changes it names the one before in `QM_SECRET_KEY_FALLBACKS`; otherwise everybody is signed "
    "out and channels must be given their addresses again.",
    "secret_key_fallbacks": "Secret keys of before, as a JSON list: what they signed and sealed is still read.",
    "debug": "Shows failures with their source. Never in production.",
    "demo": "Serves the style guide, and static files without collecting them.",
    "allowed_hosts": "Host names that the portal answers to, as a JSON list.",
    "public_url": "The address people type. With `https://`, cookies are secure, plain HTTP is sent on and HSTS is on.",
    "data_dir": "A folder for collected static files and the clock's schedule.",
    "fleet_file": "A JSON file with clusters and flavors that are added or changed at each start; empty for none.",
    "kubeconfig_dir": "The folder with the kubeconfig files of the fleet; a cluster names a file in it.",
    "database_url": "`postgresql://user:password@host:5432/name`, or `sqlite:////path` for one machine. Statements are "
    "prepared: PgBouncer in between needs to be 1.22 or newer, with `max_prepared_statements` above 0.",
    "migrate_database_url": (
        "The login that owns the tables, for `manage.py migrate` alone, which then grants the login of "
        "`QM_DATABASE_URL` what it needs. Empty: that login migrates, too."
    ),
    "broker_url": "`redis://:password@host:6379/0`, or `filesystem:///path` for one machine.",
    "cache_url": (
        "`redis://:password@host:6379/1`, or `file:///path` for one machine. Rate limits are counted here. "
        "Values are JSON."
    ),
    "entra_authority": "`https://login.microsoftonline.com/` and the tenant id.",
    "entra_tenant_id": "The tenant that people sign in from. Tokens of other tenants are refused.",
    "entra_client_id": "The application's id.",
    "entra_client_secret": "The application's secret.",
    "entra_scopes": "What an Entra access token may do by the scopes in its `scp`: `read`, `ask` or `write` (decide), "
    "as a JSON object. A token with none of these scopes may do nothing.",
    "backstage_url": "The backend of the Backstage whose plugins may call the API for people, such as "
    "`https://backstage.example.com`; empty for none. See "
    "[Call it from Backstage](../how-to/call-it-from-backstage.md).",
    "backstage_catalog_token": "A static token of that backend with which the portal reads users of its catalog.",
    "backstage_plugins": "Backstage's plugins whose calls count, by their ids.",
    "backstage_scope": "What they may do for a person at most: `read`, or `ask` (read, ask and run work).",
    "backstage_notices_token": "A static token of that backend with which the portal notifies people in Backstage; "
    "empty where nobody is told there.",
    "sign_in_origin": "A second origin that the sign-in page is served from; empty with Entra ID.",
    "graph_url": "Microsoft Graph.",
    "ca_file": "A PEM file with the authorities to trust for Entra ID, Graph, Backstage and Azure; empty means the "
    "public ones.",
    "role_groups": 'Roles given by group: a JSON object from a group\'s object id to a role: `{"…": "auditor"}`.',
    "azure_subscription_id": "The Azure subscription with the fleet's clusters; empty for none: everything else works.",
    "azure_resource_group": "The resource group in which the portal makes what it makes in Azure. Needed with a "
    "subscription.",
    "azure_registry": "The resource id of the container registry that the groups of teams get access to; empty for "
    "none.",
    "azure_tenant_id": "The subscription's tenant; empty for `QM_ENTRA_TENANT_ID`.",
    "azure_credential": "As whom Azure is called: `workload_identity` (of a pod), `managed_identity` (of a "
    "machine), or `client_secret`.",
    "azure_client_id": "The id of the application or identity; `managed_identity` needs it only where a machine has "
    "several.",
    "azure_client_secret": "The application's secret, with `client_secret` alone.",
    "azure_token_file": "Where the cluster puts the token that Entra ID trusts, with `workload_identity`.",
    "azure_arm_url": "Azure Resource Manager, where it is not the public one.",
    "azure_authority": "Where tokens for Azure come from, without the tenant.",
    "azure_prices_url": "Azure's retail prices, which are read without a token.",
    "mail_host": "The mail server; while it is empty, mails wait.",
    "mail_port": "Its port: 587 for `starttls`, 465 for `tls`.",
    "mail_username": "The user name to sign in with; empty for a server that takes mail without.",
    "mail_password": "The password; only ever sent over TLS.",
    "mail_from": "The sender of all mail.",
    "mail_tls": "`starttls`, `tls` (from the first byte on), or `none` for a server on the same machine.",
    "webhook_hosts_allowed": "Inner hosts (`host` or `host:port`) that channels may name all the same, as a JSON list.",
    "webhook_receivers": "Hosts (`host` or `host:port`) to which signed webhooks may be sent, as a JSON list; none, "
    "and there are no webhooks. An inner host, or a port other than 443, stands in `QM_WEBHOOK_HOSTS_ALLOWED` as well.",
    "hub_credentials_dir": "The folder of the tokens by which JupyterHubs know the portal; hubs name a file in it.",
    "hub_hosts_allowed": "Inner hosts (`host` or `host:port`) whose JupyterHubs may be called, as a JSON list.",
    "git_credentials_dir": "The folder of tokens and SSH keys that open Git repositories; clusters name a file in it.",
    "git_local_dir": "The folder in which Git repositories on the same machine may lie; none may without it.",
    "run_images": "What images of runs may begin with, as in `registry.example.com/`: a JSON list, empty for any.",
    "git_hosts_allowed": "Inner hosts (`host` or `host:port`) whose Git repositories may be used, as a JSON list.",
    "git_author": "Who signs the portal's commits, as `Name <address>`.",
    "metrics_token": "With what your Prometheus asks for `/metrics`: 32 or more random characters; empty, and there is "
    "no such address. See [Watch the portal](../how-to/watch-the-portal.md).",
    "request_seconds": "Seconds that a request's headers, and then its body, may take to arrive.",
    "session_hours": "Hours without work after which a session ends; whatever its person does starts them anew.",
    "session_limit_hours": "Hours after signing in at which a session ends whatever was done in it.",
    "anchor_mail": (
        "JSON list of addresses outside the platform that get the signed head of the audit log once a day. "
        "[How to check it](../how-to/verify-the-audit-log.md)."
    ),
    "anchor_dir": (
        "A folder for the same, one file a day, which nobody who runs the portal can change afterwards, such as a "
        "mounted object store with retention."
    ),
    "logs_kept_days": "Days for which the last lines of a run's log are kept once its pods are gone; 0 keeps none.",
    "retention_days": "Days for which what a leaving team had on a cluster is kept, unless its departure says others.",
    "monthly_budget_usd": "The monthly budget in USD of a team that nobody has set one for.",
    "trusted_proxies": "Networks of the proxies in front, as a JSON list: whom they name in `X-Forwarded-For` is who "
    "called. Without any, the address of the connection counts.",
    "sign_in_rate": "Sign-ins that one address may start in a minute; only the number counts.",
    "write_rate": "API calls that change something, by person; a preview changes nothing.",
    "read_rate": "API calls that only read, by person.",
    "export_rate": "Files of the audit log that one person may take in a minute.",
}

OUTSIDE_SETTINGS = (
    ("`QM_SECRETS_DIR`", "empty", "A folder with one file for each secret."),
)

ABOUT_ROLES = """\
Roles come from Entra ID alone: an app role in the token, or membership in a group that `QM_ROLE_GROUPS` names by its
object id. They are read again at each sign-in,
and groups about every five minutes in between. Who has no other role is a data scientist.

Everybody may bring a team on board with a group they are a member of, ask for GPUs for their teams, give them back, and
see what belongs to their teams. Nobody decides their own request, whatever their roles."""

PERMISSIONS: Mapping[str, str] = {
    "see_all_teams": "See every team's requests, holdings and budgets.",
    "see_audit": "See every event of the audit log, and have the chain verified.",
    "onboard_any_group": "Bring any group on board, and ask for GPUs for any team.",
    "decide_as_platform": "Decide the platform leads' step of a request.",
    "decide_as_leadership": "Decide engineering leadership's step of a request.",
    "manage_clusters": "Add and change clusters and flavors, and have any tenancy looked at again.",
    "manage_teams": "Change any team's name, cost centre, group and owner.",
    "manage_budgets": "Set budgets, and let many allocations end at once, or keep them, when the brake holds them.",
    "manage_cost_centres": "Put cost centres on the list of those that teams may spend on, and take them off.",
    "give_back_for_teams": (
        "Give back what any team holds; read the logs of any team's runs and work, live and kept; stop its runs and "
        "work, change time limits of its runs; stop its notebooks, keep them though they are idle, and exempt them "
        "from idle stops."
    ),
    "manage_notices": "Set up the channels that are told, and send again what could not be sent.",
    "manage_tiers": "Put a team into another tier, which the policy may treat differently.",
    "manage_catalogue": "Switch offerings on and off, and change their gates, order and prices.",
    "see_policy_drafts": "See drafts of the policy and what they would have decided.",
    "manage_policy": "Write and withdraw drafts of the policy.",
    "remove_teams": "Take the protection from deletion off, confirm that a team leaves, and restore it.",
    "manage_access": "Let take effect what the directory takes from many at once, and give back what it took.",
    "activate_policy": "Put a draft that somebody else wrote in force.",
}

ABOUT_EVENTS = """\
Each event has a number without gaps, a time, who did it, what it is about, details, the id of the call it came with,
and a hash over all of it and over the event before. An event is written in the transaction of what it tells of, and
never changed. [Verify the audit log](../how-to/verify-the-audit-log.md) says how to check the chain.

A refused change is an event when a right was missing or an object was not as it had to be (403, 404, 409, 412), for
the first 30 of a person in a minute. Where the call was about a request, a run, a notebook, a team, a cluster, or what
a team holds there, the event is about that, and of its team. What touched no object (400, 405, 415,
422, 428, 429) is a line in the log, and who looked for what is not theirs changed nothing (403, 404): both are counted
by person, day and status for 90 days, which `GET /api/v1/events/refusals/` tells."""

ABOUT_POLICY = """\
Each request is held against the rules below, in the preview, when it is sent, and again at each approval. When every
rule holds, the policy approves at once. Otherwise people decide: those of the first of the policy's routes that takes
the request. While it waits for them it is judged again every few seconds, and granted without them as soon as every
rule holds: when GPUs, money or a window come free, when a cost centre is confirmed, when another policy comes into
force. Its length, its GPU-hours and its cost count as they were when it was asked for, or changed last, so that nothing
becomes small enough by waiting.

A route that takes requests from a size on counts the request together with what the team, or the person in all their
teams, waits for, still holds, or was granted within `window_days`, as far as the people of that route have not approved
it themselves or seen it in a sum before. Two rules block: what breaks them can be approved by nobody. Rules about GPUs
say nothing of what has none."""

RULES: Mapping[str, tuple[str, str]] = {
    "exists": (
        "Has the cluster this many GPUs of this flavor at all?",
        "Not possible.",
    ),
    "free": (
        "Are this many free now?",
        "People decide; they can approve only when enough are free.",
    ),
    "after": (
        "Do enough GPUs stay free for others? Only where `keep_free_gpus` is set.",
        "People decide.",
    ),
    "quota": (
        "Does Azure's quota have room for it, as it was read last? Only for what is made in Azure.",
        "People decide; Azure refuses what is beyond it, and the request fails with that reason.",
    ),
    "budget": (
        "Is the cost within what the budget has left, in each month that it touches?",
        "People decide; they can approve only when the budget has been raised.",
    ),
    "budget_hours": (
        "Are the GPU-hours within what the budget has left, in each month? Only where the budget limits them.",
        "People decide; they can approve only when the budget has been raised.",
    ),
    "budget_soft": (
        "Is the budget of each month still below its soft stage with this?",
        "People decide, unless `automatic_beyond_soft_budget` says otherwise.",
    ),
    "days": (
        "Is it short enough, from when it was asked for, or from its beginning where it begins later?",
        "Over `automatic_days` people decide; over `longest_days` it is not possible.",
    ),
    "gpus": ("Is the number small enough?", "People decide."),
    "gpu_hours": ("Are the GPU-hours of the whole time few enough?", "People decide."),
    "cost_centre": (
        "Does it cost nothing while the team's cost centre is not confirmed?",
        "People decide. With what the policy granted within the window, up to `unconfirmed_usd` is automatic.",
    ),
    "money": ("Does it cost little enough in all?", "People decide."),
    "window": (
        "Is it small enough together with what the policy approved for the team in the last days?",
        "People decide, so that ten small requests are one large one.",
    ),
    "booked": (
        "Where it begins later: is it small enough together with what the policy booked for the team in the same time?",
        "Over `window_gpus_team` people decide, however long ago the rest was booked.",
    ),
    "window_person": (
        "Is it small enough together with what the policy approved for the person in the last days, in any team?",
        "People decide.",
    ),
    "window_usd": (
        "Does it cost little enough together with what the policy approved for the team in the last days?",
        "People decide.",
    ),
    "window_usd_person": (
        "Does it cost little enough together with what the policy approved for the person in these days, in any team?",
        "People decide.",
    ),
    "use": (
        "Is enough of what the team holds of this flavor in use, in all of its namespaces? Only where it holds some.",
        (
            "People decide. Until it was held for `use_after_hours` and read `use_after_samples` times, "
            "`automatic_when_unmeasured` says how it counts."
        ),
    ),
    "environment": (
        "Is it for an environment where nobody is harmed?",
        "People decide.",
    ),
    "reversible": ("Can it be undone soon enough?", "People decide."),
    "gate": (
        "Does the catalogue leave this offering to the policy?",
        "People decide, whatever the other rules say.",
    ),
}

ABOUT_THRESHOLDS = """\
The numbers below are those of the first version of the policy; every limit is inclusive, and `empty` is no limit.
Overrides may set them otherwise for some offerings, environments, flavors and tiers. The version in force is on
the page `/policy/` and at `/api/v1/policy/`. Each evaluation keeps the version that judged it."""

THRESHOLDS: Mapping[str, str] = {
    "automatic_gpus": "GPUs in one request.",
    "automatic_gpu_hours": "GPU-hours for the whole time.",
    "automatic_usd": "USD for the whole time.",
    "unconfirmed_usd": "USD within the window that are automatic while a team's cost centre is not confirmed.",
    "automatic_days": "Days until the end, from when it was asked for, or from its beginning where it begins later.",
    "longest_days": "Days that what is granted lasts at most, counted from its beginning, whoever approves.",
    "window_days": "Days that the windows look back.",
    "window_gpus_team": "GPUs that the policy approves for a team within the window; those kept longer count once.",
    "window_gpus_person": "GPUs that the policy approves for a person within the window, in all their teams.",
    "window_usd_team": "USD that the policy approves for a team within the window, for any offering, this included.",
    "window_usd_person": "USD that the policy approves for a person within the window, in all their teams.",
    "automatic_environments": "Environments in which the policy approves.",
    "automatic_beyond_soft_budget": "Whether the policy still approves what goes beyond the soft stage of a budget.",
    "least_use_percent": "Percent of what is held that must be in use before more is automatic; 0 asks for none.",
    "automatic_when_unmeasured": "Whether what is not measured yet counts as used.",
    "use_after_hours": "Hours that GPUs are held before their use counts as measured.",
    "use_after_samples": "Readings of the cluster that use needs to count as measured; at most one a minute is kept.",
    "keep_free_gpus": "GPUs of the flavor that stay free after an automatic approval.",
    "reversible_minutes": "Minutes within which what is approved can be undone.",
    "carried_out_hours": "Hours within which a person carries something out; after twice as many leadership is told.",
}
