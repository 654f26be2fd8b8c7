"""Capacity in Azure: reserved, used, shrunk, released; refused by a quota; and seen through when its worker dies.

What Azure has is asked of Azure, through Microsoft's own client, and not of the portal.
"""

import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any

import requests
from azure.core.exceptions import ResourceNotFoundError
from azure.core.pipeline.transport import RequestsTransport
from azure.identity import ClientSecretCredential
from azure.mgmt.compute import ComputeManagementClient
from azure.mgmt.containerservice import ContainerServiceClient

from connectors.kubernetes import Cluster
from scripts.catalogue_job import HOUR, Catalogue
from scripts.expecting import expect

if TYPE_CHECKING:
    from scripts.main_job import MainJob

CLUSTER, SIZE, SMALL = "dev-eastus", "Standard_NC64as_T4_v3", "Standard_NC24ads_A100_v4"
MARK = "quartermaster-reservation"
POD = ("v1", "Pod")
# How long an operation takes during which the worker is killed.
SLOW_SECONDS = 6.0


class Reserving:
    """The steps, played by Ada for Climate; people decide each ask, workers do the rest."""

    def __init__(self, job: "MainJob") -> None:
        self.job, self.shop = job, Catalogue(job, keys="azure")
        self.told = job.demo.sandbox["azure"]
        self.cluster = Cluster.from_kubeconfig(
            job.demo.sandbox["kubernetes"][CLUSTER]["admin_kubeconfig"]
        )
        self.request = 0

    def steps(self) -> Iterator[tuple[str, Callable[[], str | None]]]:
        """Every step in order, in words."""
        yield "the chain names what stops more GPUs, and the quota above it", self.chain
        yield (
            "a zone that has no such machines is refused before it is sent",
            self.refuse,
        )
        yield (
            "three machines with nodes are asked for, approved, and reserved in Azure",
            self.reserve,
        )
        yield "a pod takes one of them, and Azure counts it", self.use
        yield (
            "one is given back: two are held, of which one is used, as the portal says, too",
            self.shrink,
        )
        yield (
            "its worker is killed in the middle of an operation: the next goes on with the same",
            self.survive,
        )
        yield (
            "all are given back: the pool goes, then the reservation, then its group",
            self.release,
        )
        yield (
            "more than the quota has: it fails with Azure's reason, and its money is free",
            self.exceed,
        )

    def chain(self) -> str:
        """Sixteen more A100, asked of the API."""
        found = self.shop.get(
            "Ada", "/quota-chains/training-eastus/?flavor=a100-80gb&gpus=64"
        )
        layers = [one["layer"] for one in found["links"]]
        expect(layers[:2] == ["family", "regional"], f"It has {layers}.")
        expect(
            not found["fits"] and "stopped at" in found["sentence"],
            str(found["sentence"]),
        )
        page = self.job.people["Ada"].get(
            "/clusters/training-eastus/chain?flavor=a100-80gb&gpus=64"
        )
        expect(
            page.status == 200 and "stopped at" in page.text,
            f"The page answers {page.status}.",
        )
        return str(found["sentence"])

    def refuse(self) -> str:
        """By what the portal has read of the subscription."""
        spec = {
            "region": "eastus",
            "vm_size": SMALL,
            "instances": 1,
            "zone": "3",
            "nodes_for": "",
        }
        until = (datetime.now(UTC) + HOUR).isoformat()
        body = {
            "team": "climate",
            "offering": "reservation",
            "spec": spec,
            "until": until,
        }
        answer = self.job.call("Ada", "POST", "/requests/preview/", body)
        expect(
            answer.status_code == 422 and answer.json()["code"] == "not_in_zone",
            answer.text,
        )
        return str(answer.json()["detail"])

    def reserve(self) -> str:
        """One reservation in a group of its own, with a pool that takes its nodes from it."""
        started = time.monotonic()
        self.request = self.ask(3)
        self.shop.approve(self.request)
        self.shop.stage(self.request, "active")
        [found] = self.reservations()
        expect(
            (found.sku.name, found.sku.capacity) == (SIZE, 3), f"Azure has {found.sku}."
        )
        [pool] = self.pools()
        expect(
            pool.properties.max_count == 3,
            f"The pool grows to {pool.properties.max_count}.",
        )
        expect(
            "capacityreservationgroups"
            in str(pool.properties.capacity_reservation_group_id).lower(),
            "No group.",
        )
        self.shop.says(self.request, "Approved")
        return (
            f"{found.name}, {time.monotonic() - started:.1f} s after it was asked for"
        )

    def use(self) -> str:
        """Anything that asks for a node of this pool; the cluster's autoscaler makes it of what is reserved."""
        [pool] = self.pools()
        self.cluster.create(_pod(pool.name))
        self.job.until("Azure counts it", lambda: len(self.used()) == 1, seconds=60)
        return f"{len(self.used())} of {self.reservations()[0].sku.capacity} machines are used"

    def shrink(self) -> str:
        """What runs stays."""
        self.give_back(1)
        self.job.until(
            "two are reserved",
            lambda: [one.sku.capacity for one in self.reservations()] == [2],
        )
        self.job.until(
            "the pool knows",
            lambda: [one.properties.max_count for one in self.pools()] == [2],
        )
        expect(len(self.used()) == 1, f"Azure counts {self.used()}.")
        self.job.until(
            "the portal says so",
            lambda: (self.seen()["held"], self.seen()["used"]) == (2, 1),
        )
        seen = self.seen()
        page = self.job.people["Ada"].get(f"/capacity/reservations/{seen['id']}")
        expect(
            page.status == 200 and SIZE in page.text, f"Its page answers {page.status}."
        )
        return f"{seen['held']} held, {seen['used']} used, ${seen['usd_per_hour_each']} an hour each"

    def survive(self) -> str:
        """Both of a grant are a reservation of their own, which is being made when the worker ends."""
        self.pace(SLOW_SECONDS)
        try:
            number = self.ask(1, vm_size=SMALL, nodes_for="")
            self.shop.approve(number)
            self.job.until("Azure has begun it", lambda: self.being_made() is not None)
            begun = self.being_made()
            self.job.demo.kill("worker")
            self.job.demo.start_worker()
            self.shop.stage(number, "active")
        finally:
            self.pace(1.0)
        made = [one for one in self.reservations() if one.sku.name == SMALL]
        expect(len(made) == 1, f"Azure has {len(made)} of them.")
        expect(
            begun == made[0].properties.time_created,
            f"It was begun at {begun}, made at {made[0].properties}.",
        )
        self.back(number)
        return f"begun once at {begun:%H:%M:%S}, made once"

    def release(self) -> str:
        """Azure deletes no reservation that a machine is associated with; the pod goes with its node."""
        self.cluster.delete(POD, "uses-reserved", "default")
        self.back(self.request)
        self.job.until(
            "nothing of it is in Azure", lambda: not self.reservations(), seconds=60
        )
        self.job.until("its group is gone", lambda: not self.groups(), seconds=60)
        expect(not self.pools(), "The pool is still there.")
        return "pool, reservation, group"

    def exceed(self) -> str:
        """Told before it is sent; people approve it all the same, and Azure says no."""
        before = self.shop.held()
        number = self.ask(9, vm_size=SMALL, nodes_for="")
        shown = self.shop.get("Ada", f"/requests/{number}/")["evaluations"][0]["answer"]
        [rule] = [one for one in shown["rules"] if one["code"] == "quota"]
        expect(not rule["holds"], f"It says {rule}.")
        self.shop.approve(number)
        self.shop.stage(number, "failed")
        self.job.until("its money is free", lambda: self.shop.held() == before)
        self.job.until("Azure has nothing of it", lambda: not self.groups(), seconds=60)
        said = self.shop.says(number, "quota")
        return f"{rule['text']}; {said}"

    def ask(
        self,
        instances: int,
        *,
        vm_size: str = SIZE,
        nodes_for: str = f"{CLUSTER}/t4-16gb",
    ) -> int:
        """Ask for machines for an hour; returns the request's number."""
        spec = {
            "region": "eastus",
            "vm_size": vm_size,
            "instances": instances,
            "zone": "",
            "nodes_for": nodes_for,
        }
        return self.shop.ask("reservation", spec)

    def back(self, number: int) -> None:
        """Give back all that a request was granted, and wait until it is over."""
        self.shop.post("Ada", f"/requests/{number}/let-go/", {})
        self.shop.stage(number, "ended")

    def give_back(self, machines: int) -> None:
        """Give back some of what the first request was granted."""
        held = self.shop.get("Ada", f"/requests/{self.request}/")["allocation"]
        self.shop.post(
            "Ada", f"/allocations/{held['id']}/give-back/", {"machines": machines}
        )

    def seen(self) -> dict[str, Any]:
        """The reservation with nodes as Ada's client is told of it."""
        rows = self.shop.get("Ada", "/reservations/?team=climate")["results"]
        return dict(
            next(
                row
                for row in rows
                if row["vm_size"] == SIZE and row["state"] != "released"
            )
        )

    def being_made(self) -> datetime | None:
        """When Azure began to make the small reservation that is not there yet; None where none is being made."""
        rows = [one for one in self.reservations() if one.sku.name == SMALL]
        made = [
            one.properties.time_created
            for one in rows
            if one.properties.provisioning_state == "Creating"
        ]
        return made[0] if made else None

    def groups(self) -> list[Any]:
        """The capacity reservation groups of the portal, as Azure has them."""
        rows = self.compute.capacity_reservation_groups.list_by_resource_group(
            self.told["resource_group"]
        )
        return [one for one in rows if MARK in (one.tags or {})]

    def reservations(self) -> list[Any]:
        """The capacity reservations of the portal, as Azure has them, with their use."""
        return [row for one in self.groups() for row in self.reserved_in(one.name)]

    def reserved_in(self, group: str) -> list[Any]:
        """The capacity reservations of a group; none where it has gone since it was listed."""
        of_group = self.compute.capacity_reservations.list_by_capacity_reservation_group
        try:
            return [
                *of_group(self.told["resource_group"], group, expand="instanceView")
            ]
        except ResourceNotFoundError:
            return []

    def used(self) -> list[str]:
        """The ids of the machines that run on what is reserved."""
        views = [
            one.properties.instance_view.utilization_info for one in self.reservations()
        ]
        return [
            machine.id
            for view in views
            for machine in view.virtual_machines_allocated or ()
        ]

    def pools(self) -> list[Any]:
        """The node pools that the portal has made in the cluster, as AKS has them."""
        rows = self.containers.agent_pools.list(self.told["resource_group"], CLUSTER)
        return [one for one in rows if str(one.name).startswith("qm")]

    def pace(self, seconds: float) -> None:
        """Say how long Azure's operations take."""
        answer = requests.post(
            f"{self.told['arm']}/sandbox/operations",
            json={"seconds": seconds},
            headers={"Authorization": f"Bearer {self.told['admin_secret']}"},
            verify=self.job.demo.sandbox["ca"],
            timeout=10,
        )
        expect(answer.ok, answer.text)

    @cached_property
    def compute(self) -> ComputeManagementClient:
        """Microsoft's client for machines."""
        return ComputeManagementClient(**self._client())

    @cached_property
    def containers(self) -> ContainerServiceClient:
        """Microsoft's client for AKS."""
        return ContainerServiceClient(**self._client())

    def _client(self) -> dict[str, Any]:
        told = self.told
        credential = ClientSecretCredential(
            told["tenant_id"],
            told["client_id"],
            told["client_secret"],
            authority=told["authority"],
            disable_instance_discovery=True,
            transport=self._transport(),
        )
        return {
            "credential": credential,
            "subscription_id": told["subscription_id"],
            "base_url": told["arm"],
            "transport": self._transport(),
        }

    def _transport(self) -> RequestsTransport:
        return RequestsTransport(
            connection_verify=self.job.demo.sandbox["ca"], use_env_settings=False
        )


def _pod(pool: str) -> dict[str, Any]:
    """A pod that takes all GPUs of a node of one pool."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        # The sandbox runs pods that nothing controls only where they say for how long.
        "metadata": {
            "name": "uses-reserved",
            "namespace": "default",
            "annotations": {"test/run-for": "600"},
        },
        "spec": {
            "nodeSelector": {"kubernetes.azure.com/agentpool": pool},
            "tolerations": [{"operator": "Exists"}],
            "containers": [
                {
                    "name": "main",
                    "image": "registry.example.com/pytorch:2.9",
                    "resources": {
                        "limits": {"nvidia.com/gpu": "4"},
                        "requests": {"nvidia.com/gpu": "4"},
                    },
                }
            ],
        },
    }
