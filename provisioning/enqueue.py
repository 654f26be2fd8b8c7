"""Telling a worker of a tenancy: a lost message costs two seconds."""

from reconciling.enqueue import Queue

queue = Queue("provisioning.tasks.reconcile_tenancy", expires=60, subject="tenancy")
enqueue, enqueue_on_commit = queue.enqueue, queue.enqueue_on_commit
