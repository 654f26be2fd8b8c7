"""Everything that the package keeps, gathered for Django."""

from capacity.increases.models import QuotaIncrease
from capacity.metering.models import Meter, Reading
from capacity.openai.models import ModelAccount, ModelEndpoint, ModelQuota
from capacity.orphans.models import Orphan
from capacity.prices.models import DoubtedPrice, MachinePrice, PastPrice, PriceRegion
from capacity.registry.models import RegistryAccess
from capacity.reservations.models import Reservation, ReservationDay
from capacity.subscriptions.models import FamilyQuota, NodePool, Subscription, VmSize

__all__ = [
    "DoubtedPrice",
    "FamilyQuota",
    "MachinePrice",
    "Meter",
    "ModelAccount",
    "ModelEndpoint",
    "ModelQuota",
    "NodePool",
    "Orphan",
    "PastPrice",
    "PriceRegion",
    "QuotaIncrease",
    "Reading",
    "RegistryAccess",
    "Reservation",
    "ReservationDay",
    "Subscription",
    "VmSize",
]
