"""Azure Resource Manager and the retail prices API on loopback, for Microsoft's own clients.

    azure = AzureSandbox(spec, "https://localhost:8443", entra, clusters, specs, admin_secret="…")
    azure.app                        # the ASGI application: `sandbox.serving` serves it over TLS
    azure.snapshot()                 # JSON data; AzureSandbox(..., stored=state) or restore(state) brings it back

The administrator's secret as a bearer token may do everything, and use the switches: `POST` and `DELETE
/sandbox/faults` (see `faults`), `POST /sandbox/clock {advance}`, `POST /sandbox/operations {seconds}`, `POST
/sandbox/quota {request, granted}`, and `POST /sandbox/tokens`, which ends every token that was used so far.
"""

from sandbox.azure.app import AzureSandbox

__all__ = ["AzureSandbox"]
