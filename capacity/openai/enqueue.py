"""Telling a worker of an account: a lost message costs until the next sweep."""

from reconciling.enqueue import Queue

queue = Queue(
    "capacity.tasks.reconcile_model_account", expires=60, subject="model account"
)
enqueue, enqueue_on_commit = queue.enqueue, queue.enqueue_on_commit
