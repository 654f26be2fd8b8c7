"""Desired states for tests: one whole sample, and any that could be."""

from dataclasses import replace
from typing import Any

from hypothesis import strategies as st

from fleet.services import SharedService
from provisioning.desired.manifests import tenancy_objects
from provisioning.desired.naming import namespace_of
from provisioning.desired.priorities import PRIORITIES
from provisioning.desired.spec import FlavorQuota, TenancySpec, Volume

SAMPLE = TenancySpec(
    tenancy=7,
    team="vision",
    project="detection",
    cost_centre="CC-4100",
    environment="dev",
    namespace=namespace_of(team="vision", project="detection"),
    entra_group="00000000-0000-4000-9000-000000000001",
    cohort="quartermaster",
    storage_class="azurefile-premium",
    flavors=(
        FlavorQuota(
            name="a100-80gb", gpus=2, borrow=1, cpu_per_gpu=8, memory_gib_per_gpu=64
        ),
        FlavorQuota(
            name="h100-80gb", gpus=0, borrow=0, cpu_per_gpu=12, memory_gib_per_gpu=128
        ),
    ),
)


# As many as a tenancy has on a cluster of the factories: without a notebook hub and shared services.
OBJECTS = len(tenancy_objects(SAMPLE))


def sample(**changes: Any) -> TenancySpec:
    """The sample with some fields changed."""
    return replace(SAMPLE, **changes)


RESOURCES = (
    "nvidia.com/gpu",
    "nvidia.com/mig-1g.10gb",
    "nvidia.com/mig-1g.10gb.me",
    "nvidia.com/mig-3g.40gb",
)
_SLUGS = st.from_regex(r"[a-z]([a-z0-9-]{0,28}[a-z0-9])?", fullmatch=True)


@st.composite
def _flavors(draw: st.DrawFn) -> tuple[FlavorQuota, ...]:
    names = sorted(
        draw(
            st.sets(_SLUGS.filter(lambda name: name != "quartermaster-cpu"), max_size=4)
        )
    )
    made = []
    for name in names:
        gpus = draw(st.integers(0, 9_999))
        made.append(
            FlavorQuota(
                name=name,
                gpus=gpus,
                borrow=draw(st.integers(0, gpus)),
                cpu_per_gpu=draw(st.integers(1, 100)),
                memory_gib_per_gpu=draw(
                    st.sampled_from([1, 31, 64, 100, 128, 512, 1024])
                ),
                over=draw(st.integers(0, 3)),
                resource=draw(st.sampled_from(RESOURCES)),
            )
        )
    return tuple(made)


@st.composite
def _volumes(draw: st.DrawFn) -> tuple[Volume, ...]:
    return tuple(
        Volume(
            name=name,
            gib=draw(st.integers(1, 65_536)),
            access=draw(st.sampled_from(["ReadWriteOnce", "ReadWriteMany"])),
        )
        for name in sorted(draw(st.sets(_SLUGS, max_size=3)))
    )


_SPACES = st.from_regex(r"[a-z]([a-z0-9-]{0,28}[a-z0-9])?", fullmatch=True).filter(
    lambda n: not n.startswith("qm-")
)


@st.composite
def _services(draw: st.DrawFn) -> tuple[SharedService, ...]:
    labels = st.dictionaries(
        st.sampled_from(["app", "app.kubernetes.io/name", "tier"]), _SLUGS, min_size=1
    )
    return tuple(
        SharedService(
            name=name,
            namespace=draw(_SPACES),
            labels=tuple(sorted(draw(labels).items())),
            port=draw(st.integers(1, 65_535)),
        )
        for name in sorted(draw(st.sets(_SLUGS, max_size=3)))
    )


@st.composite
def specs(draw: st.DrawFn) -> TenancySpec:
    """Any desired state that actions could publish."""
    team, project = draw(_SLUGS), draw(_SLUGS)
    return TenancySpec(
        tenancy=draw(st.integers(1, 10**9)),
        team=team,
        project=project,
        cost_centre=draw(
            st.from_regex(
                r"[A-Za-z0-9]([A-Za-z0-9-]{0,18}[A-Za-z0-9])?", fullmatch=True
            )
        ),
        environment=draw(st.sampled_from(["dev", "test", "production"])),
        namespace=namespace_of(team=team, project=project),
        entra_group=str(draw(st.uuids(version=4))),
        cohort=draw(_SLUGS),
        storage_class=draw(st.just("") | _SLUGS),
        flavors=draw(_flavors()),
        volumes=draw(_volumes()),
        ended_volumes=draw(_volumes()),
        weight=draw(st.integers(1, 100)),
        jupyterhub_namespace=draw(st.just("") | _SPACES),
        services=draw(_services()),
        dashboards=draw(st.booleans()),
        highest_priority=draw(st.sampled_from(sorted(PRIORITIES))),
    )
