"""Telling a worker of a subscription: a lost message costs until the next sweep."""

from reconciling.enqueue import Queue

queue = Queue("capacity.tasks.observe_subscription", expires=60, subject="subscription")
enqueue, enqueue_on_commit = queue.enqueue, queue.enqueue_on_commit
