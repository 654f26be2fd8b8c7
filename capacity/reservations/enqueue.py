"""Telling a worker of a reservation: a lost message costs until the next sweep."""

from reconciling.enqueue import Queue

queue = Queue("capacity.tasks.reconcile_reservation", expires=60, subject="reservation")
enqueue, enqueue_on_commit = queue.enqueue, queue.enqueue_on_commit
