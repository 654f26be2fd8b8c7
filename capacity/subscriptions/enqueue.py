"""Telling a worker that a subscription is to be read; it takes the next one: a lost message costs until the sweep."""

from reconciling.enqueue import Queue

queue = Queue("capacity.tasks.observe_subscription", expires=60)
enqueue, enqueue_on_commit = queue.enqueue, queue.enqueue_on_commit
