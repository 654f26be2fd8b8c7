"""One step of a plan, written to a cluster and checked by what the cluster answers.

A write whose answer was lost may have been done: what stands is read back, and the pass goes on.
"""

from collections.abc import Callable, Iterator

from connectors.errors import PermanentError, TemporaryError
from connectors.kubernetes import AnswerLost
from connectors.kubernetes import Cluster as Client
from provisioning.desired.manifests import Manifest
from provisioning.desired.plan import Key, Step, difference, first_difference

# Of answers of which every third is lost, four in a row are one in eighty.
TRIES = 4
Found = Manifest | None


def write(client: Client, step: Step) -> Iterator[None]:
    """Do the step; yields after each write that was taken. Raises TemporaryError or PermanentError.

    What others added is taken away first, by name: server-side apply takes away only what we own. The manifest follows
    when that was not all.
    """
    key, manifest = step.key, step.manifest
    if manifest is None:
        _delete(client, key)
        yield
        return
    answer: Found = None
    if step.removal is not None:
        answer = _without_additions(client, key, step.removal, manifest)
        yield
    if answer is None or difference(manifest, answer):
        answer = _apply(client, key, manifest)
        yield
    # A field may vanish without an error (a pruned field of another version): only what is there counts.
    found = first_difference(manifest, answer)
    if found:
        raise PermanentError(
            f"{key.kind} {key.name}: {found} after writing.", code="vanished"
        )


def _delete(client: Client, key: Key) -> None:
    def delete() -> Found:
        client.delete(key.ref, key.name, key.namespace or None)
        return None

    _surely(
        client,
        key,
        delete,
        lambda found: found is None or "deletionTimestamp" in found["metadata"],
    )


def _apply(client: Client, key: Key, manifest: Manifest) -> Manifest:
    def is_done(found: Found) -> bool:
        return found is not None and not difference(manifest, found)

    return _surely(client, key, lambda: client.apply(manifest), is_done) or {}


def _without_additions(
    client: Client, key: Key, removal: Manifest, manifest: Manifest
) -> Manifest:
    try:
        return client.merge(key.ref, key.name, key.namespace or None, removal)
    except AnswerLost:
        found = client.get(key.ref, key.name, key.namespace or None)
        if found is not None and not first_difference(manifest, found):
            return found
        raise
    except PermanentError as error:
        if error.code not in ("conflict", "not_found"):
            raise
        # It names the version that was compared: somebody wrote once more since, or deleted the object.
        words = f"{key.kind} {key.name} was changed just now."
        raise TemporaryError(words, retry_after=1) from error


def _surely(
    client: Client, key: Key, act: Callable[[], Found], is_done: Callable[[Found], bool]
) -> Found:
    """Do it, and again while answers are lost and it is not done; raises AnswerLost after some tries."""
    for _ in range(TRIES - 1):
        try:
            return act()
        except AnswerLost:
            found = client.get(key.ref, key.name, key.namespace or None)
            if is_done(found):
                return found
    return act()
