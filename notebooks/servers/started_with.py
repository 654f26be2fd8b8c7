"""What a server was started with in a hub: the profile, the namespace and the choices that the hub tells of it."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from connectors.jupyterhub import HubServer
from fleet.models import Cluster
from notebooks.models import Profile, ProfileVersion
from notebooks.places import flavors_on
from notebooks.profile_desk.kept import Offered, document_in, offered
from notebooks.profiles.choosing import Chosen, NotAChoice, chosen
from notebooks.profiles.document import Document
from notebooks.profiles.spawning import spawned_as
from notebooks.servers.models import NotebookServer
from provisioning.models import Tenancy


@dataclass(frozen=True, kw_only=True)
class Started:
    """A profile with what was chosen in it, and the namespace in which it runs."""

    tenancy: Tenancy
    offer: Offered
    chosen: Chosen

    def is_same_profile_there(self, server: NotebookServer) -> bool:
        """Whether it is a server's own profile in its namespace: with any other the hub is told no variables of it."""
        return (
            server.tenancy_id == self.tenancy.pk
            and server.profile.slug == self.offer.document.slug
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
        choices = _chosen(offer.document, one)
        if choices is None:
            return None
        return Started(tenancy=tenancy, offer=offer, chosen=choices)

    def is_as_kept(self, server: NotebookServer, one: HubServer) -> bool:
        """Whether a server runs with the profile, the namespace and the choices with which it is kept.

        What nobody chose is as the version of the profile has it with which it was started.
        """
        started = self.of(one)
        if started is None:
            return is_of_its_profile(server, one)
        document = self._document_of(server) or started.offer.document
        choices = _chosen(document, one)
        return (
            started.is_same_profile_there(server)
            # Only a newer version has a choice that its own does not have.
            and _said(started.offer.document, one).keys() <= _said(document, one).keys()
            and choices is not None
            and choices.options == server.options
        )

    def _named(self, name: str) -> tuple[Tenancy, Offered] | None:
        """The namespace and the profile that a server's choices name together."""
        for namespace, tenancy in self._tenancies.items():
            slug = name.removesuffix(spawned_as("", namespace))
            if slug != name and slug in self._offered:
                return tenancy, self._offered[slug]
        return None

    def _document_of(self, server: NotebookServer) -> Document | None:
        """What its profile said when a server was started; None where an update of the product takes that no longer."""
        place = server.profile_id, server.profile_version
        if place not in self._documents:
            version = ProfileVersion.objects.filter(
                profile=server.profile_id, number=server.profile_version
            ).first()
            self._documents[place] = None if version is None else document_in(version)
        return self._documents[place]

    @cached_property
    def _documents(self) -> dict[tuple[int, int], Document | None]:
        return {}

    @cached_property
    def _tenancies(self) -> Mapping[str, Tenancy]:
        here = Tenancy.objects.here().filter(cluster=self.cluster)
        return {one.namespace: one for one in here.select_related("team")}

    @cached_property
    def _offered(self) -> Mapping[str, Offered]:
        return {one.document.slug: one for one in offered()}


def is_of_its_profile(server: NotebookServer, one: HubServer) -> bool:
    """Whether a server is of the profile that is known of it, though that may be retired or lack a choice by now."""
    return one.options.get("profile") == server.user_options["profile"]


def _chosen(document: Document, one: HubServer) -> Chosen | None:
    """The choices of a profile that a hub tells of a server; None where it has no such choice."""
    try:
        return chosen(document, _said(document, one))
    except NotAChoice:
        return None


def _said(document: Document, one: HubServer) -> Mapping[str, str]:
    """Of what a hub tells of a server that which is an option of a profile."""
    return {
        name: str(value)
        for name, value in one.options.items()
        if name != "profile" and name.partition("--")[0] in document.options
    }
