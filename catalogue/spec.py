"""What each offering asks for: typed, closed to unknown fields, and pure.

A spec says what is wanted; `until`, the team and the reason belong to every request and stand beside it.
"""

from typing import Annotated, Any, ClassVar, Literal

from annotated_types import Ge
from pydantic import BaseModel, ConfigDict, Field

NAME = r"^[a-z]([a-z0-9-]{0,38}[a-z0-9])?$"
KIND = r"^[a-z0-9-]{1,40}/[a-z0-9-]{1,40}$"
REGION = r"^[a-z]{2,}[a-z0-9]{0,30}$"

Flavor = Annotated[str, Field(title="Kind of GPU", pattern=KIND, json_schema_extra={"list": "flavors"})]
ClusterName = Annotated[str, Field(title="Cluster", pattern=NAME, json_schema_extra={"list": "clusters"})]
Region = Annotated[str, Field(title="Region", pattern=REGION, json_schema_extra={"list": "regions"})]
VmSize = Annotated[
    str,
    Field(title="VM size", pattern=r"^Standard_[A-Za-z0-9_]{2,40}$", json_schema_extra={"list": "vm_sizes"}),
]


class Spec(BaseModel):
    """The base of every spec: nothing is converted, nothing unknown is taken."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)
    counted: ClassVar[str] = ""  # the field that says how many, "" when there is one of it

    @property
    def count(self) -> int:
        """How many units are asked for; people may approve fewer."""
        return int(getattr(self, self.counted)) if self.counted else 1

    @classmethod
    def least(cls) -> int:
        """The smallest number of units that can be asked for."""
        limits = cls.model_fields[cls.counted].metadata if cls.counted else []
        return next((limit.ge for limit in limits if isinstance(limit, Ge) and isinstance(limit.ge, int)), 1)

    def fewer(self, count: int) -> dict[str, Any]:
        """The same spec as JSON for `count` units."""
        return self.model_dump(mode="json") | ({self.counted: count} if self.counted else {})


class GpuSpec(Spec):
    """GPUs of a kind for whatever the team does with them."""

    counted: ClassVar[str] = "gpus"
    flavor: Flavor
    gpus: int = Field(title="GPUs", ge=1, le=9_999)
    purpose: Literal["training", "notebook", "inference", "other"] = Field(default="training", title="For")


class TrainingSpec(GpuSpec):
    """A large training: eight GPUs or more."""

    gpus: int = Field(title="GPUs", ge=8, le=9_999)
    purpose: Literal["training"] = "training"


class NotebookSpec(Spec):
    """A notebook server with GPUs of its own."""

    counted: ClassVar[str] = "gpus"
    flavor: Flavor
    gpus: int = Field(title="GPUs", ge=1, le=8)
    image: Literal["pytorch", "tensorflow", "scipy"] = Field(default="pytorch", title="Image")


class EndpointSpec(Spec):
    """A production inference endpoint: replicas of a model that answer requests."""

    counted: ClassVar[str] = "replicas"
    flavor: Flavor
    model: str = Field(title="Model", min_length=1, max_length=80, pattern=r"^[A-Za-z0-9][A-Za-z0-9._/:-]*$")
    gpus_per_replica: int = Field(title="GPUs per replica", ge=1, le=8)
    replicas: int = Field(title="Replicas", ge=1, le=64)


class NamespaceSpec(Spec):
    """A namespace for a project's environment on a cluster; the team may have several there."""

    cluster: ClusterName
    environment: Literal["dev", "test", "production"] = Field(default="dev", title="Environment")
    project: str = Field(title="Project", pattern=NAME, json_schema_extra={"list": "projects"})


class VolumeSpec(Spec):
    """A volume for datasets beside the team's namespace."""

    counted: ClassVar[str] = "gib"
    cluster: ClusterName
    name: str = Field(title="Name", pattern=NAME)
    gib: int = Field(title="Size in GiB", ge=1, le=65_536)
    access: Literal["ReadWriteOnce", "ReadWriteMany"] = Field(default="ReadWriteMany", title="Access")


class ClusterSpec(Spec):
    """A new cluster for work that the present ones cannot take."""

    counted: ClassVar[str] = "nodes"
    region: Region
    vm_size: VmSize
    nodes: int = Field(title="GPU nodes", ge=1, le=1_000)
    purpose: Literal["training", "inference", "development"] = Field(default="training", title="For")


class OpenAiSpec(Spec):
    """An Azure OpenAI endpoint: a deployment of a model with a ceiling of tokens a minute."""

    counted: ClassVar[str] = "thousand_tokens_per_minute"
    region: Region
    model: str = Field(
        title="Model", pattern=r"^[a-z0-9][a-z0-9.-]{1,40}$", json_schema_extra={"list": "models"}
    )
    thousand_tokens_per_minute: int = Field(title="Thousand tokens a minute", ge=1, le=10_000)


class ReservationSpec(Spec):
    """Azure capacity that is kept, and paid, whether it is used or not."""

    counted: ClassVar[str] = "instances"
    region: Region
    vm_size: VmSize
    instances: int = Field(title="Instances", ge=1, le=1_000)
