"""What only the sandbox has, for its administrator: faults, the clock, decisions about quota, ends of tokens."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from sandbox.azure.callers import Callers
from sandbox.azure.errors import ArmError, invalid
from sandbox.azure.faults import Faults
from sandbox.azure.operations import Operations
from sandbox.azure.quota import Quota
from sandbox.azure.routing import Answer, Call
from sandbox.azure.state import State


@dataclass(frozen=True)
class Switches:
    """Handlers below /sandbox."""

    state: State
    callers: Callers
    faults: Faults
    operations: Operations
    quota: Quota

    def answer(self, call: Call) -> Answer:
        """Answer one; raise ArmError 403 to all but the administrator."""
        if not call.caller.is_admin:
            raise ArmError(
                403,
                "AuthorizationFailed",
                "The sandbox's switches are its administrator's.",
            )
        switches: dict[tuple[str, str], Callable[[Call], Any]] = {
            ("POST", "/sandbox/faults"): self._fault,
            ("DELETE", "/sandbox/faults"): lambda _: self.faults.clear(),
            ("POST", "/sandbox/clock"): self._advance,
            ("POST", "/sandbox/operations"): self._pace,
            ("POST", "/sandbox/quota"): self._decide,
            ("POST", "/sandbox/tokens"): lambda _: self.callers.expire(),
        }
        switch = switches.get((call.method, call.path))
        if switch is None:
            raise ArmError(
                404, "NotFound", f"There is no switch {call.method} {call.path}."
            )
        switch(call)
        return Answer(204)

    def _fault(self, call: Call) -> None:
        """POST /sandbox/faults: see `faults`."""
        self.faults.add(call.body())

    def _advance(self, call: Call) -> None:
        """POST /sandbox/clock {advance}: set the clock forward by seconds; what is due by then is over."""
        self.state.clock.ahead += _seconds(call, "advance")
        self.state.touch()
        self.operations.settle()
        self.quota.settle()

    def _pace(self, call: Call) -> None:
        """POST /sandbox/operations {seconds}: how long operations take that begin from now on."""
        self.operations.seconds = _seconds(call, "seconds")

    def _decide(self, call: Call) -> None:
        """POST /sandbox/quota {request, granted}: decide a request now."""
        body = call.body()
        self.quota.decide(
            str(body.get("request")), is_granted=body.get("granted") is not False
        )


def _seconds(call: Call, name: str) -> float:
    value = call.body().get(name)
    if not isinstance(value, int | float) or value < 0:
        raise invalid(f"Give {{{name}}} as seconds of 0 or more.", "BadRequest")
    return float(value)
