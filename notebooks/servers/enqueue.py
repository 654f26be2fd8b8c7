"""Telling a worker of a notebook server: a lost message costs two seconds."""

from reconciling.enqueue import Queue

queue = Queue("notebooks.tasks.reconcile_server", expires=60, subject="notebook")
enqueue, enqueue_on_commit = queue.enqueue, queue.enqueue_on_commit
