"""Azure's regions that have GPUs and may be asked for beside those of the fleet. Pure."""

REGIONS = (
    "eastus",
    "eastus2",
    "southcentralus",
    "westus3",
    "westeurope",
    "northeurope",
    "swedencentral",
    "uksouth",
)
