"""Telling a worker of a run: a lost message costs two seconds."""

from reconciling.enqueue import Queue

queue = Queue("workloads.tasks.look_after_run", expires=60, subject="run")
enqueue, enqueue_on_commit = queue.enqueue, queue.enqueue_on_commit
