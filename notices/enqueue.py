"""Telling a worker that something is to be sent: a lost message costs five seconds."""

from reconciling.enqueue import Queue

queue = Queue("notices.tasks.deliver", expires=30)
enqueue, enqueue_on_commit = queue.enqueue, queue.enqueue_on_commit
