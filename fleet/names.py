"""What names on a cluster may look like, and what stands for GPUs there. Pure."""

import re

LABEL_KEY = re.compile(
    r"([a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?/)?[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?"
)
# A label on a node may be empty.
LABEL_VALUE = re.compile(r"([A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?)?")
DNS_LABEL = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
# As Kubernetes names cohorts and storage classes; both become names in its addresses.
OBJECT_NAME = re.compile(r"[a-z0-9]([-a-z0-9.]{0,58}[a-z0-9])?")
# A Service of a cluster with its port: monitoring/prometheus-operated:9090.
SERVICE = re.compile(
    r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?/[a-z]([-a-z0-9]{0,61}[a-z0-9])?:[0-9]{1,5}"
)
# As nodes count GPUs: whole ones, or the MIG profiles of mixed nodes.
RESOURCE = re.compile(r"nvidia\.com/(gpu|mig-[1-9]g\.[1-9][0-9]{0,2}gb(\.me)?)")
WHOLE_GPU, MIG = "nvidia.com/gpu", "nvidia.com/mig-"
# Namespaces of teams begin with it; nothing that teams share lives in one.
TEAM_SPACE = "qm-"


def profile_of(resource: str) -> str:
    """The MIG profile whose slices a resource counts, such as "1g.10gb"; empty for one that counts whole GPUs."""
    return resource.removeprefix(MIG) if resource.startswith(MIG) else ""


def slice_words(profile: str, product: str = "") -> str:
    """What people call slices of a profile behind a number: "1g.10gb slice", "A100 1g.10gb slice"."""
    named = product if profile in product else f"{product} {profile}".strip()
    return f"{named} slice"


def product_words(product: str, resource: str) -> str:
    """What people call what a resource counts of a product, behind a number: "A100", "A100 1g.10gb slice"."""
    profile = profile_of(resource)
    return slice_words(profile, product) if profile else product


def flavor_key(cluster: str, name: str) -> str:
    """A kind of GPU as forms, links and the API name it: "training-eastus/a100"."""
    return f"{cluster}/{name}"


def fits(pattern: re.Pattern[str], text: object, *, longest: int = 63) -> bool:
    """Whether something is a text of this form."""
    return (
        isinstance(text, str) and len(text) <= longest and bool(pattern.fullmatch(text))
    )


def is_shared_space(text: object) -> bool:
    """Whether something names a namespace that is no team's."""
    return fits(DNS_LABEL, text) and not str(text).startswith(TEAM_SPACE)
