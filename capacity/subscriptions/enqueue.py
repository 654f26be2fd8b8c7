"""Telling a worker that a subscription is to be read; it takes the next one: a lost message costs until the sweep.

And that a kind of GPU took from the quotas that a cluster shares: a lost message costs until these are read again.
"""

from reconciling.enqueue import Queue

queue = Queue("capacity.tasks.observe_subscription", expires=60)
enqueue, enqueue_on_commit = queue.enqueue, queue.enqueue_on_commit

sharing = Queue("capacity.tasks.follow_beside", expires=60, subject="cluster")
