"""People for whom a plugin of Backstage calls: checked by its keys, known by the object id that its catalog tells."""

from datetime import datetime
from functools import cache as once_per_process

from django.conf import settings
from django.core.cache import cache

from connectors.backstage import Backstage
from connectors.errors import PermanentError
from web.counters import breaker

# What the portal is called as a plugin of Backstage, to which its tokens are made out.
PLUGIN_ID = "quartermaster"
REMEMBERED_SECONDS = 300


def called_for(token: str) -> tuple[str, datetime]:
    """The object id of the person whom a plugin's token speaks for, and until when it is good.

    Raises TemporaryError, and PermanentError as the connector does, or for a plugin that calls for nobody.
    """
    call = connection().verify(token)
    if not call.user_ref:
        raise PermanentError(
            f"Backstage's {call.plugin} calls for nobody; the portal answers people.",
        )
    key = f"backstage-person:{call.user_ref}"
    known = breaker.ask(lambda: cache.get(key), otherwise=None)
    oid = known or connection().object_id_of(call.user_ref)
    if not known:
        breaker.ask(lambda: cache.set(key, oid, REMEMBERED_SECONDS), otherwise=None)
    return oid, call.expires_at


@once_per_process
def connection() -> Backstage:
    """The Backstage of the settings; its keys are remembered."""
    env = settings.ENV
    return Backstage(
        env.backstage_url,
        audience=PLUGIN_ID,
        callers=env.backstage_plugins,
        catalog_token=env.backstage_catalog_token.get_secret_value(),
        ca_file=str(env.ca_file) if env.ca_file else None,
    )
