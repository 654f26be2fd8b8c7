"""What a platform lead says about a cluster and about a kind of GPU; every rule is the action's."""

import json
from typing import TYPE_CHECKING, Any

from django import forms

from fleet.actions import CLUSTER_FIELDS, FLAVOR_FIELDS
from fleet.models import Cluster, Flavor

if TYPE_CHECKING:
    _ClusterForm = forms.ModelForm[Cluster]
    _FlavorForm = forms.ModelForm[Flavor]
else:
    # Only the type stubs know that a model form is of a model.
    _ClusterForm = _FlavorForm = forms.ModelForm

if TYPE_CHECKING:
    ClusterBase = forms.ModelForm[Cluster]
    FlavorBase = forms.ModelForm[Flavor]
else:
    ClusterBase = FlavorBase = forms.ModelForm

NAME_HELP = "Small letters, digits and hyphens; it stays for ever."


class ClusterForm(_ClusterForm):
    """A cluster; credentials stay in a kubeconfig file that is only named here."""

    class Meta:
        model = Cluster
        fields = ["name", "title", "region", "purpose", "kubeconfig", "context", "cohort", "borrow_percent",
                  "storage_class", "enabled"]  # fmt: skip
        labels = {
            "kubeconfig": "Kubeconfig file", "cohort": "Cohort", "borrow_percent": "May borrow, percent of its own",
            "enabled": "Takes teams", "title": "Name for people", "storage_class": "Storage class",
        }  # fmt: skip
        help_texts = {
            "name": NAME_HELP,
            "kubeconfig": "The name of a file in the portal’s kubeconfig folder; empty for the portal’s own cluster.",
            "context": "Empty for the file’s current context.",
            "cohort": "Teams of one cohort lend each other idle GPUs.",
            "storage_class": "For the teams’ shared disks; empty for the cluster’s default.",
        }

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if self.instance.pk:
            del self.fields["name"]

    def values(self) -> dict[str, Any]:
        """What the action takes."""
        return {name: value for name, value in self.cleaned_data.items() if name in CLUSTER_FIELDS}

    def _post_clean(self) -> None:
        """Leave the row alone: the action fills and checks it, under its lock."""


class LabelsField(forms.CharField):
    """A JSON document in a text field, shown indented."""

    widget = forms.Textarea(attrs={"rows": 3, "spellcheck": "false", "class": "font-mono"})

    def prepare_value(self, value: Any) -> Any:
        """The document as text."""
        return value if isinstance(value, str) else json.dumps(value)

    def to_python(self, value: Any) -> Any:
        """The document; raises ValidationError when it is none."""
        try:
            return json.loads(value or "null")
        except ValueError as error:
            raise forms.ValidationError(f"This is not JSON: {error}.", code="not_json") from error


class FlavorForm(_FlavorForm):
    """A kind of GPU: product, price, and the marks of the nodes that have it."""

    node_labels = LabelsField(label="Labels of its nodes", help_text='Such as {"accelerator": "nvidia-a100"}')
    node_taints = LabelsField(
        label="Taints of its nodes", required=False,
        help_text='Such as [{"key": "sku", "value": "gpu", "effect": "NoSchedule"}]',
    )  # fmt: skip

    class Meta:
        model = Flavor
        fields = ["name", "product", "memory_gb", "gpus_per_node", "capacity_type", "price_per_gpu_hour", "node_labels",
                  "node_taints", "cpu_per_gpu", "memory_gib_per_gpu", "is_offered"]  # fmt: skip
        labels = {
            "memory_gb": "GPU memory, GB", "gpus_per_node": "GPUs in a node", "price_per_gpu_hour": "USD per GPU-hour",
            "cpu_per_gpu": "CPUs with a GPU", "memory_gib_per_gpu": "Memory with a GPU, GiB", "is_offered": "Offered",
            "capacity_type": "Paid as",
        }  # fmt: skip
        help_texts = {"name": NAME_HELP}

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if self.instance.pk:
            del self.fields["name"]

    def values(self) -> dict[str, Any]:
        """What the action takes; no taints is an empty list."""
        values = {name: value for name, value in self.cleaned_data.items() if name in FLAVOR_FIELDS}
        return values | {"node_taints": values.get("node_taints") or []}

    def _post_clean(self) -> None:
        """Leave the row alone: the action fills and checks it, under its lock."""
