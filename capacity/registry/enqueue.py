"""Telling a worker of an access: a lost message costs until the next sweep."""

from reconciling.enqueue import Queue

queue = Queue(
    "capacity.tasks.reconcile_registry_access", expires=60, subject="registry access"
)
enqueue, enqueue_on_commit = queue.enqueue, queue.enqueue_on_commit
