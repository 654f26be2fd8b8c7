"""People for whom a plugin of Backstage calls: checked by its keys, known by the object id that its catalog tells."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from functools import cache as once_per_process

from django.conf import settings
from django.core.cache import cache
from django.utils import timezone

from connectors.backstage import Backstage, BackstageCall
from connectors.errors import PermanentError
from web.counters import breaker

# What the portal is called as a plugin of Backstage, to which its tokens are made out.
PLUGIN_ID = "quartermaster"
REMEMBERED_SECONDS = 300
NOTED_SECONDS = 30 * 24 * 3600
CALL, REFUSAL = "backstage-call", "backstage-refusal"


@dataclass(frozen=True)
class Noted:
    """What was last noted of a kind: a call that was let in, or one that was not and why."""

    at: datetime
    words: str


@dataclass(frozen=True)
class State:
    """The Backstage that the portal is connected with; None for what was not within thirty days."""

    address: str
    plugins: list[str]
    scope: str
    notifies: bool
    call: Noted | None
    refusal: Noted | None


def state() -> State | None:
    """Whether it is heard, for whoever has just connected it; None without one."""
    env = settings.ENV
    if not env.backstage_url:
        return None
    return State(
        env.backstage_url,
        env.backstage_plugins,
        env.backstage_scope,
        notifies(),
        _last(CALL),
        _last(REFUSAL),
    )


def called_for(token: str) -> tuple[str, BackstageCall]:
    """The object id of the person whom a plugin's token speaks for, and what it says.

    Raises TemporaryError, and PermanentError as the connector does, or for a plugin that calls for nobody.
    """
    call = connection().verify(token)
    if not call.user_ref:
        raise PermanentError(
            f"Backstage's {call.plugin} calls for nobody: sign in to Backstage. Its static tokens are nobody's."
        )
    find = connection().object_id_of
    return _remembered("backstage-person", call.user_ref, find), call


def notifies() -> bool:
    """Whether people are told in Backstage what they are told by mail."""
    env = settings.ENV
    return bool(env.backstage_url and env.backstage_notices_token.get_secret_value())


def user_ref_of(oid: str) -> str:
    """Who the person of this object id is in Backstage's catalog; empty for who is not in it.

    Remembered for five minutes. Raises as the connector does.
    """
    return _remembered("backstage-user", oid, connection().user_ref_of)


def note_call(call: BackstageCall) -> None:
    """Remember that a call was let in."""
    _note(CALL, f"{call.plugin} for {call.user_ref}")


def note_refusal(why: str) -> None:
    """Remember why a call was not let in."""
    _note(REFUSAL, why)


def _remembered(kind: str, who: str, find: Callable[[str], str]) -> str:
    """What the catalog says of somebody, asked for again after five minutes, or where no cache answers."""
    key = f"{kind}:{who}"
    known: str | None = breaker.ask(lambda: cache.get(key), otherwise=None)
    if known is not None:
        return known
    found = find(who)
    breaker.ask(lambda: cache.set(key, found, REMEMBERED_SECONDS), otherwise=None)
    return found


def _last(kind: str) -> Noted | None:
    found = breaker.ask(lambda: cache.get(kind), otherwise=None)
    return Noted(datetime.fromisoformat(found[0]), found[1]) if found else None


def _note(kind: str, words: str) -> None:
    noted = [timezone.now().isoformat(), words]
    breaker.ask(lambda: cache.set(kind, noted, NOTED_SECONDS), otherwise=None)


@once_per_process
def connection() -> Backstage:
    """The Backstage of the settings; its keys are remembered."""
    env = settings.ENV
    return Backstage(
        env.backstage_url,
        audience=PLUGIN_ID,
        callers=env.backstage_plugins,
        catalog_token=env.backstage_catalog_token.get_secret_value(),
        notices_token=env.backstage_notices_token.get_secret_value(),
        ca_file=str(env.ca_file) if env.ca_file else None,
    )
