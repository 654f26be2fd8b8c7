"""What a server was started with in a hub: the profile, the namespace and the choices that the hub tells of it."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from connectors.jupyterhub import HubServer
from fleet.models import Cluster
from notebooks.models import Profile
from notebooks.places import flavors_on
from notebooks.profile_desk.kept import Offered, offered
from notebooks.profiles.choosing import Chosen, NotAChoice, chosen
from notebooks.profiles.spawning import spawned_as
from notebooks.servers.models import NotebookServer
from provisioning.models import Tenancy


@dataclass(frozen=True, kw_only=True)
class Started:
    """A profile with what was chosen in it, and the namespace in which it runs."""

    tenancy: Tenancy
    offer: Offered
    chosen: Chosen

    def is_as_known(self, server: NotebookServer) -> bool:
        """Whether a server is kept with the same profile, namespace and choices."""
        return (
            server.tenancy_id == self.tenancy.pk
            and server.profile.slug == self.offer.document.slug
            and server.options == self.chosen.options
        )

    @property
    def fields(self) -> dict[str, Any]:
        """What is kept of it with a server: whose GPUs it takes, how many of which, and at which price."""
        document, gpus = self.offer.document, self.chosen.gpus
        flavors = flavors_on(self.tenancy.cluster_id) if gpus else {}
        flavor = flavors.get(document.flavor)
        return {
            "team": self.tenancy.team,
            "tenancy": self.tenancy,
            "profile": Profile.objects.get(slug=document.slug),
            "profile_version": self.offer.number,
            "options": dict(self.chosen.options),
            "flavor": flavor,
            "gpus": gpus,
            "usd_per_hour": gpus * flavor.price_per_gpu_hour if flavor else 0,
        }


@dataclass(frozen=True)
class Profiles:
    """What people can choose on a cluster; nothing is read before it is asked for, and then once."""

    cluster: Cluster

    def of(self, one: HubServer) -> Started | None:
        """What a server was started with; None where the portal offers no such profile or choice there."""
        found = self._named(str(one.options.get("profile", "")))
        if found is None:
            return None
        tenancy, offer = found
        known = {
            name: str(value)
            for name, value in one.options.items()
            if name != "profile" and name.partition("--")[0] in offer.document.options
        }
        try:
            return Started(
                tenancy=tenancy, offer=offer, chosen=chosen(offer.document, known)
            )
        except NotAChoice:
            return None

    def _named(self, name: str) -> tuple[Tenancy, Offered] | None:
        """The namespace and the profile that a server's choices name together."""
        for namespace, tenancy in self._tenancies.items():
            slug = name.removesuffix(spawned_as("", namespace))
            if slug != name and slug in self._offered:
                return tenancy, self._offered[slug]
        return None

    @cached_property
    def _tenancies(self) -> Mapping[str, Tenancy]:
        here = Tenancy.objects.here().filter(cluster=self.cluster)
        return {one.namespace: one for one in here.select_related("team")}

    @cached_property
    def _offered(self) -> Mapping[str, Offered]:
        return {one.document.slug: one for one in offered()}
