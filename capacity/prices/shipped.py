"""The price list that comes with the product, for where Azure's cannot be read. Pure.

USD per hour with Linux, on demand, and the GPUs of each size, as of `SHIPPED_ON`.
"""

from datetime import date
from decimal import Decimal

SHIPPED_ON = date(2026, 11, 1)
VM_PRICES = {
    "Standard_NC4as_T4_v3": Decimal("0.526"),
    "Standard_NC64as_T4_v3": Decimal("4.352"),
    "Standard_NV36ads_A10_v5": Decimal("3.20"),
    "Standard_NV72ads_A10_v5": Decimal("6.52"),
    "Standard_NC24ads_A100_v4": Decimal("3.673"),
    "Standard_NC48ads_A100_v4": Decimal("7.346"),
    "Standard_NC96ads_A100_v4": Decimal("14.692"),
    "Standard_NC40ads_H100_v5": Decimal("6.98"),
    "Standard_ND96amsr_A100_v4": Decimal("32.77"),
    "Standard_ND96isr_H100_v5": Decimal("98.32"),
}
VM_GPUS = {
    "Standard_NC4as_T4_v3": 1,
    "Standard_NC64as_T4_v3": 4,
    "Standard_NV36ads_A10_v5": 1,
    "Standard_NV72ads_A10_v5": 2,
    "Standard_NC24ads_A100_v4": 1,
    "Standard_NC48ads_A100_v4": 2,
    "Standard_NC96ads_A100_v4": 4,
    "Standard_NC40ads_H100_v5": 1,
    "Standard_ND96amsr_A100_v4": 8,
    "Standard_ND96isr_H100_v5": 8,
}
