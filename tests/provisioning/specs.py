"""Desired states for tests: one whole sample, and any that could be."""

from dataclasses import replace
from typing import Any

from hypothesis import strategies as st

from provisioning.naming import namespace_of
from provisioning.spec import FlavorQuota, TenancySpec

SAMPLE = TenancySpec(
    tenancy=7,
    team="vision",
    project="detection",
    cost_centre="CC-4100",
    environment="dev",
    namespace="qm-vision-detection-a1b2c3",
    entra_group="00000000-0000-4000-9000-000000000001",
    cohort="quartermaster",
    storage_class="azurefile-premium",
    flavors=(
        FlavorQuota(name="a100-80gb", gpus=2, borrow=1, cpu_per_gpu=8, memory_gib_per_gpu=64),
        FlavorQuota(name="h100-80gb", gpus=0, borrow=0, cpu_per_gpu=12, memory_gib_per_gpu=128),
    ),
)


def sample(**changes: Any) -> TenancySpec:
    """The sample with some fields changed."""
    return replace(SAMPLE, **changes)


_SLUGS = st.from_regex(r"[a-z]([a-z0-9-]{0,28}[a-z0-9])?", fullmatch=True)


@st.composite
def _flavors(draw: st.DrawFn) -> tuple[FlavorQuota, ...]:
    names = sorted(draw(st.sets(_SLUGS.filter(lambda name: name != "quartermaster-cpu"), max_size=4)))
    made = []
    for name in names:
        gpus = draw(st.integers(0, 9_999))
        made.append(
            FlavorQuota(
                name=name,
                gpus=gpus,
                borrow=draw(st.integers(0, gpus)),
                cpu_per_gpu=draw(st.integers(1, 100)),
                memory_gib_per_gpu=draw(st.sampled_from([1, 31, 64, 100, 128, 512, 1024])),
            )
        )
    return tuple(made)


@st.composite
def specs(draw: st.DrawFn) -> TenancySpec:
    """Any desired state that actions could publish."""
    team, project = draw(_SLUGS), draw(_SLUGS)
    return TenancySpec(
        tenancy=draw(st.integers(1, 10**9)),
        team=team,
        project=project,
        cost_centre=draw(st.from_regex(r"[A-Za-z0-9]([A-Za-z0-9-]{0,18}[A-Za-z0-9])?", fullmatch=True)),
        environment=draw(st.sampled_from(["dev", "test", "production"])),
        namespace=namespace_of(team=team, project=project),
        entra_group=str(draw(st.uuids(version=4))),
        cohort=draw(_SLUGS),
        storage_class=draw(st.just("") | _SLUGS),
        flavors=draw(_flavors()),
    )
