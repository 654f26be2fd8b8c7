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
SERVICE = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?/[a-z]([-a-z0-9]{0,61}[a-z0-9])?:[0-9]{1,5}")
# As nodes count GPUs: whole ones, or the MIG profiles of mixed nodes.
RESOURCE = re.compile(r"nvidia\.com/(gpu|mig-[1-9]g\.[1-9][0-9]{0,2}gb(\.me)?)")
WHOLE_GPU = "nvidia.com/gpu"
# Namespaces of teams begin with it; nothing that teams share lives in one.
TEAM_SPACE = "qm-"


def fits(pattern: re.Pattern[str], text: object, *, longest: int = 63) -> bool:
    """Whether something is a text of this form."""
    return isinstance(text, str) and len(text) <= longest and bool(pattern.fullmatch(text))


def is_shared_space(text: object) -> bool:
    """Whether something names a namespace that is no team's."""
    return fits(DNS_LABEL, text) and not str(text).startswith(TEAM_SPACE)
