"""Telling a worker of an orphan to release: a lost message costs until the next sweep."""

from reconciling.enqueue import Queue

queue = Queue("capacity.tasks.release_orphan", expires=60, subject="orphan")
enqueue, enqueue_on_commit = queue.enqueue, queue.enqueue_on_commit
