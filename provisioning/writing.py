"""One step of a plan, written to a cluster and checked by what the cluster answers."""

from collections.abc import Iterator

from connectors.errors import PermanentError, TemporaryError
from connectors.kubernetes import Cluster as Client
from provisioning.manifests import Manifest
from provisioning.plan import Step, difference, first_difference


def write(client: Client, step: Step) -> Iterator[None]:
    """Do the step; yields after each write that was taken. Raises TemporaryError or PermanentError.

    What others added is taken away first, by name: server-side apply takes away only what we own. The manifest follows
    when that was not all.
    """
    manifest, name, namespace = step.manifest, step.key.name, step.key.namespace or None
    if manifest is None:
        client.delete(step.key.ref, name, namespace)
        yield
        return
    answer: Manifest | None = None
    if step.removal is not None:
        answer = _without_additions(client, step, step.removal)
        yield
    if answer is None or difference(manifest, answer):
        answer = client.apply(manifest)
        yield
    # A field may vanish without an error (a pruned field of another version): only what is there counts.
    found = first_difference(manifest, answer)
    if found:
        raise PermanentError(f"{step.key.kind} {name}: {found} after writing.", code="vanished")


def _without_additions(client: Client, step: Step, removal: Manifest) -> Manifest:
    try:
        return client.merge(step.key.ref, step.key.name, step.key.namespace or None, removal)
    except PermanentError as error:
        if error.code not in ("conflict", "not_found"):
            raise
        # It names the version that was compared: somebody wrote once more since, or deleted the object.
        words = f"{step.key.kind} {step.key.name} was changed just now."
        raise TemporaryError(words, retry_after=1) from error
