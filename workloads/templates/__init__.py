"""Templates of training runs: parameters with types, limits and help, and what they become on a cluster. Pure.

A template is data and one function from a run to manifests; the same run always gives the same manifests, byte for
byte.
"""
