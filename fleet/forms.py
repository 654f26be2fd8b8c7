"""What a platform lead says about a cluster and about a kind of GPU; every rule is the action's."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from django import forms
from django.db.models import Sum

from fleet import planned_maintenance
from fleet.announcing import teams_on
from fleet.clusters.actions import CLUSTER_FIELDS, DEFAULT_BORROW_PERCENT
from fleet.flavors.actions import FLAVOR_FIELDS
from fleet.models import Cluster, Flavor
from fleet.names import WHOLE_GPU
from fleet.values import MOMENTS
from ui.amounts import gpus
from web.edits import KeepsOthersEdits
from web.fields import AmountField, MomentField, PlainNumberField, StrictForm

if TYPE_CHECKING:
    _ClusterForm = forms.ModelForm[Cluster]
    _FlavorForm = forms.ModelForm[Flavor]
else:
    # Only the type stubs know that a model form is of a model.
    _ClusterForm = _FlavorForm = forms.ModelForm

KEPT = (
    "outside_by_name",
    "kubelogin_server_id",
    "on_drift",
    "queueing",
    "delivery",
    "git_branch",
    "git_way",
    "writes_per_second",
    "most_at_once",
)
# What an autoscaler may do with a pool; nobody follows it on a cluster that is not observed.
AUTOSCALER = ("min_nodes", "max_nodes", "growing_minutes")
# A number that nobody says is 0.
MAY_BE_EMPTY = (*AUTOSCALER, "interruption_hours")
NAME_HELP = "Small letters, digits and hyphens; it stays for ever."


class WriteOffForm(StrictForm):
    """The name of the cluster that is gone for good, typed by who says so."""

    name = forms.CharField(
        label="Type the cluster’s name to confirm",
        max_length=40,
        error_messages={"required": "Type the cluster’s name to confirm."},
        widget=forms.TextInput(attrs={"autocomplete": "off", "spellcheck": "false"}),
    )

    def __init__(self, *args: Any, cluster: Cluster, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["name"].help_text = f"As it is written here: {cluster.name}"


class LabelsField(forms.CharField):
    """A JSON document in a text field, shown indented."""

    widget = forms.Textarea(
        attrs={"rows": 3, "spellcheck": "false", "class": "font-mono"}
    )

    def prepare_value(self, value: Any) -> Any:
        """The document as text."""
        if value is None:
            return ""
        return value if isinstance(value, str) else json.dumps(value)

    def to_python(self, value: Any) -> Any:
        """The document; raises ValidationError when it is none."""
        try:
            return json.loads(value or "null")
        except ValueError as error:
            raise forms.ValidationError(
                f"This is not JSON: {error}.", code="not_json"
            ) from error


# Fields of several lines.
LONG = frozenset(
    {"shared_services", "egress", "certificate_authority", "run_variables"}
)
SECTIONS = (
    (
        "What it is",
        ("name", "title", "region", "purpose", "queueing", "dedicated_to", "enabled"),
    ),
    ("What its teams read", ("announcement", "announced_until")),
    (
        "When it is maintained",
        (
            planned_maintenance.STARTS,
            planned_maintenance.ENDS,
            planned_maintenance.DRAINS,
        ),
    ),
    (
        "How the portal reaches it",
        (
            "kubeconfig",
            "context",
            "azure_id",
            "writes_per_second",
            "most_at_once",
            "on_drift",
        ),
    ),
    (
        "How changes are delivered",
        ("delivery", "git_url", "git_branch", "git_way", "git_credentials"),
    ),
    (
        "What teams get",
        (
            "cohort",
            "borrow_percent",
            "storage_class",
            "dashboards",
            "prometheus",
            "run_variables",
        ),
    ),
    (
        "How teams sign in",
        (
            "api_server",
            "kubelogin_server_id",
            "dashboards_url",
            "certificate_authority",
        ),
    ),
    (
        "What pods may reach",
        ("jupyterhub_namespace", "outside_by_name", "shared_services", "egress"),
    ),
)


@dataclass(frozen=True, kw_only=True)
class Section:
    """Fields of a form about one thing; those of several lines are `long`."""

    title: str
    fields: Sequence[forms.BoundField]
    long: Sequence[forms.BoundField]


class ClusterForm(KeepsOthersEdits, _ClusterForm):
    """A cluster; credentials stay in a kubeconfig file that is only named here."""

    shared_services = LabelsField(
        label="Services that all teams may call",
        required=False,
        help_text='Such as [{"name": "mlflow", "namespace": "mlflow", "labels": {"app": "mlflow"}, "port": 5000}]',
    )

    egress = LabelsField(
        label="Where teams’ pods may go outside",
        required=False,
        help_text='Such as [{"name": "internet", "cidrs": ["0.0.0.0/0"], "ports": [443]}]; private ranges stay shut '
        'but for endpoints: [{"name": "openai", "cidrs": ["10.20.0.5/32"], "ports": [443], "inside": true}]. '
        'Where the network is Cilium, names, too: [{"name": "hub", "names": ["huggingface.co", "*.huggingface.co"], '
        '"ports": [443]}]',
    )

    run_variables = LabelsField(
        label="Environment of every run",
        required=False,
        help_text='Such as {"NCCL_SOCKET_IFNAME": "eth0", "NCCL_IB_DISABLE": "1"}; a run may say otherwise. No '
        "secrets: every team reads them.",
    )

    class Meta:
        model = Cluster
        fields = [
            "name",
            "title",
            "region",
            "purpose",
            "queueing",
            "kubeconfig",
            "context",
            "azure_id",
            "cohort",
            "borrow_percent",
            "storage_class",
            "jupyterhub_namespace",
            "shared_services",
            "egress",
            "run_variables",
            "outside_by_name",
            "dashboards",
            "dedicated_to",
            "delivery",
            "git_url",
            "git_branch",
            "git_way",
            "git_credentials",
            "on_drift",
            "writes_per_second",
            "most_at_once",
            "api_server",
            "certificate_authority",
            "kubelogin_server_id",
            "dashboards_url",
            "prometheus",
            "enabled",
            "announcement",
            "announced_until",
            planned_maintenance.STARTS,
            planned_maintenance.ENDS,
            planned_maintenance.DRAINS,
        ]
        field_classes = dict.fromkeys(MOMENTS, MomentField) | dict.fromkeys(
            ("borrow_percent", "writes_per_second", "most_at_once"), PlainNumberField
        )
        widgets = {
            "certificate_authority": forms.Textarea(
                attrs={"rows": 5, "spellcheck": "false"}
            )
        }
        labels = {
            "certificate_authority": "Its certificate authority",
            "kubeconfig": "Kubeconfig file",
            "announcement": "Announcement",
            "announced_until": "Until (UTC)",
            planned_maintenance.STARTS: "Starts (UTC)",
            planned_maintenance.ENDS: "Ends (UTC)",
            planned_maintenance.DRAINS: "Stop what runs when it starts",
            "cohort": "Cohort",
            "queueing": "Whose queues it has",
            "borrow_percent": "May borrow, percent of its own",
            "enabled": "Takes teams and requests",
            "title": "Name for people",
            "storage_class": "Storage class",
            "jupyterhub_namespace": "Namespace of JupyterHub",
            "dashboards": "Grafana dashboards",
            "outside_by_name": "Ways out by DNS name",
            "dedicated_to": "For one team alone",
            "delivery": "Delivered by",
            "git_url": "Repository",
            "writes_per_second": "Writes a second",
            "most_at_once": "Teams worked on at once",
            "git_branch": "Branch",
            "git_way": "Changes reach the branch by",
            "git_credentials": "Git credentials file",
            "on_drift": "When somebody changes it from elsewhere",
            "api_server": "Address for kubectl",
            "kubelogin_server_id": "Application that kubelogin signs in to",
            "dashboards_url": "Grafana’s address",
            "prometheus": "Its Prometheus",
            "azure_id": "Its resource id in Azure",
        }
        help_texts = {
            "name": NAME_HELP,
            "queueing": "What lets jobs in there; it stays for ever. With Volcano each kind of GPU has a resource of "
            "its own, teams borrow nothing, nothing is delivered by Git, and there are no notebooks.",
            "enabled": "Without it nobody new comes, and nobody asks for more or keeps GPUs longer; who is there works "
            "on until what they hold ends, and is looked after.",
            "writes_per_second": "All workers together; a new team may be ahead by ten seconds. 20 spares other users.",
            "most_at_once": "More are faster; a cluster that does not answer never has more than one.",
            "delivery": "By Git, nothing is written to the cluster itself; with a kubeconfig it is looked at.",
            "git_url": "An https or ssh address without credentials; empty unless delivered by Git.",
            "git_credentials": "The name of a file with a token or an SSH key in the portal’s folder for them.",
            "kubeconfig": "The name of a file in the portal’s kubeconfig folder; empty for the portal’s own cluster.",
            "context": "Empty for the file’s current context.",
            "azure_id": "As “az aks show --query id” prints it: quota, node pools and reservations are read by it. "
            "Empty for a cluster that is not in Azure.",
            "announcement": "Its teams read it on their pages and forms, and are told.",
            planned_maintenance.STARTS: "From then on nothing new starts; what waits keeps its place until it ends. "
            "Planning it tells the teams there.",
            planned_maintenance.ENDS: "To take it back, or end it now, empty both.",
            planned_maintenance.DRAINS: "Runs start anew after it, notebooks do not. Else what runs goes on, as it "
            "always does with Volcano.",
            "announced_until": "From then on it is shown no more; empty: until you take it away.",
            "cohort": "Teams of one cohort lend each other idle GPUs; with Volcano nobody does.",
            "storage_class": "For new teams’ shared disks, which keep theirs; empty for the cluster’s default.",
            "jupyterhub_namespace": "Its hub and proxy may reach the teams’ notebooks; empty for no hub.",
            "outside_by_name": "Cilium’s DNS proxy enforces them; each look finds out whether it is there. On AKS it "
            "comes with Advanced Container Networking Services.",
            "dashboards": "Every team gets one about its own namespace, for Grafana’s sidecar to pick up.",
            "api_server": "Such as https://training-1a2b.hcp.eastus.azmk8s.io:443; teams see how to sign in with it.",
            "certificate_authority": "In PEM; empty: that of the kubeconfig file, if there is one and it names one.",
            "kubelogin_server_id": "Its object id; the one that AKS has everywhere unless you say another.",
            "dashboards_url": "Teams see a link to it; empty for none.",
            "prometheus": "As namespace/service:port; runs then say how busy their GPUs are, and notebooks whose GPUs "
            "compute count as used. Empty for none.",
            "dedicated_to": "Then no other team gets a place here; empty for all.",
        }

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if self.instance.pk:
            del self.fields["name"], self.fields["queueing"]
            self.fields["enabled"].help_text += whom_it_concerns(self.instance)
        else:
            self.initial["borrow_percent"] = DEFAULT_BORROW_PERCENT
        for name in KEPT:
            if name in self.fields:
                self.fields[name].required = False
        say_all_teams(self.fields["dedicated_to"])

    def sections(self) -> list[Section]:
        """The fields by what they are about; those of several lines stand below the others, and are wide."""
        return [
            Section(
                title=title,
                fields=[
                    self[name]
                    for name in names
                    if name in self.fields and name not in LONG
                ],
                long=[self[name] for name in names if name in LONG],
            )
            for title, names in SECTIONS
        ]

    def values(self) -> dict[str, Any]:
        """What the action takes; no services is an empty list, and a choice that was not sent stays as it is."""
        values = {
            name: value
            for name, value in self.cleaned_data.items()
            if name in CLUSTER_FIELDS and (name not in KEPT or value not in (None, ""))
        }
        if (
            values.get("queueing") == Cluster.Queueing.VOLCANO
            and "borrow_percent" not in self.changed_data
        ):
            # Nobody has said it: what stood in the field is what clusters with Kueue begin with.
            values.pop("borrow_percent", None)
        lists: dict[str, Any] = {
            name: values.get(name) or [] for name in ("shared_services", "egress")
        }
        lists["run_variables"] = values.get("run_variables") or {}
        if values.get(
            "certificate_authority"
        ):  # a text of several lines comes with those of the web
            lists["certificate_authority"] = values["certificate_authority"].replace(
                "\r\n", "\n"
            )
        return values | lists

    def _post_clean(self) -> None:
        """Leave the row alone: the action fills and checks it, under its lock."""


def whom_it_concerns(cluster: Cluster) -> str:
    """How many teams are there now, and what they hold; empty where nobody is."""
    teams = teams_on(cluster).count()
    if not teams:
        return ""
    held = cluster.flavors.aggregate(gpus=Sum("allocated"))["gpus"] or 0
    many = "1 team is" if teams == 1 else f"{teams} teams are"
    holds = "it holds" if teams == 1 else "they hold"
    return f" Now {many} there: {holds} {gpus(held)}, and {'is' if teams == 1 else 'are'} told."


def say_all_teams(field: forms.Field) -> None:
    """What an empty choice of a team means, in words."""
    if isinstance(field, forms.ModelChoiceField):
        field.empty_label = "All teams"


class FlavorForm(KeepsOthersEdits, _FlavorForm):
    """A kind of GPU: product, price, and the marks of the nodes that have it."""

    resource = forms.CharField(
        label="Counted by nodes as",
        max_length=60,
        required=False,
        initial=WHOLE_GPU,
        help_text="nvidia.com/gpu, or a MIG profile such as nvidia.com/mig-1g.10gb.",
    )
    node_labels = LabelsField(
        label="Labels of its nodes", help_text='Such as {"accelerator": "nvidia-a100"}'
    )
    node_taints = LabelsField(
        label="Taints of its nodes",
        required=False,
        help_text='Such as [{"key": "sku", "value": "gpu", "effect": "NoSchedule"}]',
    )

    price_is_meant = forms.BooleanField(label="I mean this price", required=False)

    class Meta:
        model = Flavor
        fields = [
            "name",
            "product",
            "memory_gb",
            "gpus_per_node",
            "gpus_total",
            *AUTOSCALER,
            "node_pool",
            "capacity_type",
            "interruption_hours",
            "price_per_gpu_hour",
            "follows_list",
            "node_labels",
            "node_taints",
            "resource",
            "cpu_per_gpu",
            "memory_gib_per_gpu",
            "dedicated_to",
            "is_offered",
        ]
        field_classes = {"price_per_gpu_hour": AmountField} | dict.fromkeys(
            (
                "memory_gb",
                "gpus_per_node",
                "gpus_total",
                *AUTOSCALER,
                "interruption_hours",
                "cpu_per_gpu",
                "memory_gib_per_gpu",
            ),
            PlainNumberField,
        )
        labels = {
            "memory_gb": "GPU memory, GB",
            "gpus_per_node": "GPUs in a node",
            "gpus_total": "GPUs there are",
            "min_nodes": "Nodes at least",
            "max_nodes": "Nodes at most",
            "growing_minutes": "Minutes to grow",
            "interruption_hours": "Hours between interruptions",
            "price_per_gpu_hour": "USD per GPU-hour",
            "follows_list": "Follow Azure's list price",
            "cpu_per_gpu": "CPUs with a GPU",
            "memory_gib_per_gpu": "Memory with a GPU, GiB",
            "is_offered": "Offered",
            "capacity_type": "Paid as",
            "dedicated_to": "For one team alone",
            "node_pool": "Node pool of AKS",
        }
        help_texts = {
            "name": NAME_HELP,
            "price_per_gpu_hour": "What is held keeps its price until it ends or is kept longer.",
            "follows_list": "The price then goes with the list, day by day. Until that is read, this one counts.",
            "node_pool": "Empty: the pool whose labels are those of its nodes.",
            "gpus_total": "The portal does not see this cluster’s nodes: what you say here is what teams may ask for.",
            "min_nodes": "The autoscaler’s minimum: losing more nodes than it may take away is an alarm.",
            "max_nodes": "The autoscaler’s maximum: teams may ask for as many, ready or not. 0 for no autoscaler.",
            "growing_minutes": "Usually, until a new node is ready; whoever asks reads it. 0 to say nothing.",
            "interruption_hours": "Of spot: after how long a node is taken back, on average. 0 to say nothing.",
            "dedicated_to": "Its nodes then need a taint and a label of their own; no other team’s work runs there.",
        }

    def __init__(self, *args: Any, cluster: Cluster, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if self.instance.pk:
            del self.fields["name"]
        if cluster.is_observed:
            del self.fields["gpus_total"]
        for name in AUTOSCALER:
            if cluster.is_observed:
                self.fields[name].required = False
            else:
                del self.fields[name]
        self.fields["interruption_hours"].required = False
        if not cluster.azure_id:
            del self.fields["node_pool"]
            del self.fields["follows_list"]
        if "price_is_meant" not in self.data:
            # Nobody is asked before a price is doubted.
            self.is_meant = self.fields.pop("price_is_meant")
        say_all_teams(self.fields["dedicated_to"])

    def doubt_price(self) -> None:
        """Ask beside the price whether it is meant."""
        names = [*self.fields]
        names.insert(names.index("price_per_gpu_hour") + 1, "price_is_meant")
        if "price_is_meant" not in self.fields:
            self.fields["price_is_meant"] = self.is_meant
        typed = self.data["price_per_gpu_hour"]
        self.fields["price_is_meant"].label = f"I mean {typed} USD per GPU-hour"
        self.order_fields(names)

    def values(self) -> dict[str, Any]:
        """What the action takes; no taints is an empty list, and GPUs are whole ones unless told otherwise."""
        values = {
            name: value
            for name, value in self.cleaned_data.items()
            if name in FLAVOR_FIELDS
        }
        resource = values.get("resource") or WHOLE_GPU
        numbers = {name: values[name] or 0 for name in MAY_BE_EMPTY if name in values}
        if values.get("capacity_type") != Flavor.Capacity.SPOT:
            # The field stands in the form of spot nodes alone: what a browser kept in it was not seen.
            numbers["interruption_hours"] = 0
        if self.instance.follows_list and values.get("follows_list"):
            # The list may have moved since the form was shown.
            values.pop("price_per_gpu_hour", None)
        return (
            values
            | numbers
            | {"node_taints": values.get("node_taints") or [], "resource": resource}
        )

    def _post_clean(self) -> None:
        """Leave the row alone: the action fills and checks it, under its lock."""
