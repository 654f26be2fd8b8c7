"""From the dictionaries that Kubernetes answers to facts. Pure, and tolerant: a field that is absent is not known.

Both `v1beta1` and `v1beta2` of Kueue are read, and events of both APIs.
"""
