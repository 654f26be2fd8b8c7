"""A place for a project's development, test or production. Pure."""

from typing import Literal

from pydantic import Field

from catalogue.offering import DOWN, NAME, ClusterName, Gate, Offering, Spec

ENVIRONMENTS = {"dev": "Development", "test": "Test", "production": "Production"}


class NamespaceSpec(Spec):
    """A namespace for a project's environment on a cluster; the team may have several there."""

    cluster: ClusterName
    environment: Literal["dev", "test", "production"] = Field(
        default="dev", title="Environment"
    )
    project: str = Field(
        title="Project", pattern=NAME, json_schema_extra={"list": "projects"}
    )

    def title(self, number: str, *, product: str) -> str:
        """ "Development namespace for detection"."""
        return f"{ENVIRONMENTS[self.environment]} namespace for {self.project}"

    def thing(self) -> str:
        """By its project."""
        return f"the namespace of {self.project}"

    def gone_with_it(self) -> str:
        """Jobs, volumes, everything."""
        return ", with everything in it"


NAMESPACE = Offering(
    key="namespace",
    name="Namespace",
    line="A place for a project’s development, test or production.",
    good_reason="The search goes live on 12 January, and what serves people should not share rights and limits with "
    "our training.",
    spec=NamespaceSpec,
    unit="namespace",
    gate=Gate.SELF_SERVICE,
    reversible_minutes=5,
    after=(
        "Namespace, quota, network policies and queue are made within seconds.",
        DOWN,
    ),
)
