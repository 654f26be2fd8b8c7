"""Whether the tests of the pure core notice when it is changed: one small change at a time, on demand.

No library does it here. mutmut 3 changes only what stands in functions without a decorator, so it leaves out tables
such as `provisioning.drift.defaults.FILLED_IN` and every property, and it chooses the tests for all files at once;
cosmic-ray starts a process for each change, and Django takes longer to start than the tests take to run.
"""
