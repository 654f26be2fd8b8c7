"""Telling a worker of a request for more quota: a lost message costs until the next sweep."""

from reconciling.enqueue import Queue

queue = Queue("capacity.tasks.reconcile_increase", expires=60, subject="increase")
enqueue, enqueue_on_commit = queue.enqueue, queue.enqueue_on_commit
