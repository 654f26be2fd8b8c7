"""The service catalogue: what may be asked for, in the order of its page. Pure; platform leads change the rest.

The eight offerings of the platform's charter and capacity reservations, with their default gates.
"""

from collections.abc import Mapping

from catalogue.cluster import CLUSTER
from catalogue.endpoint import ENDPOINT
from catalogue.gpus import GPUS, TRAINING
from catalogue.namespace import NAMESPACE
from catalogue.notebook import NOTEBOOK
from catalogue.offering import Offering
from catalogue.openai import OPENAI
from catalogue.reservation import RESERVATION
from catalogue.volume import VOLUME

OFFERINGS: Mapping[str, Offering] = {
    offering.key: offering
    for offering in (
        GPUS,
        NOTEBOOK,
        VOLUME,
        NAMESPACE,
        TRAINING,
        ENDPOINT,
        OPENAI,
        RESERVATION,
        CLUSTER,
    )
}
CHOICES = [(offering.key, offering.name) for offering in OFFERINGS.values()]
