"""What happens by the clock: one table. Every entry is a query over the database, safe to run twice, late or never."""

from celery.schedules import crontab

SCHEDULE = {
    "say that a worker works": {
        "task": "portal.tasks.pulse",
        "schedule": 10.0,
        "options": {"expires": 10},
    },
    "send notices": {
        "task": "notices.tasks.deliver",
        "schedule": 5.0,
        "options": {"expires": 10},
    },
    "sweep tenancies": {
        "task": "provisioning.tasks.sweep",
        "schedule": 2.0,
        "options": {"expires": 10},
    },
    "expire allocations": {
        "task": "allocations.tasks.expire",
        "schedule": 2.0,
        "options": {"expires": 10},
    },
    "begin bookings": {
        "task": "allocations.tasks.begin_bookings",
        "schedule": 2.0,
        "options": {"expires": 10},
    },
    "look at bookings": {
        "task": "allocations.tasks.look_at_bookings",
        "schedule": 300.0,
        "options": {"expires": 300},
    },
    "tell of budgets that are close": {
        "task": "allocations.tasks.tell_close",
        "schedule": 30.0,
        "options": {"expires": 60},
    },
    "observe allocations": {
        "task": "allocations.tasks.observe",
        "schedule": 5.0,
        "options": {"expires": 10},
    },
    "remind of ends": {
        "task": "allocations.tasks.remind",
        "schedule": 30.0,
        "options": {"expires": 60},
    },
    "look at work": {
        "task": "allocations.tasks.look_at_work",
        "schedule": 3.0,
        "options": {"expires": 10},
    },
    "keep tenancies in step": {
        "task": "allocations.tasks.keep_in_step",
        "schedule": 30.0,
        "options": {"expires": 60},
    },
    "sample use": {
        "task": "allocations.tasks.sample_use",
        "schedule": 60.0,
        "options": {"expires": 60},
    },
    "tell of idle GPUs": {
        "task": "allocations.tasks.tell_idle",
        "schedule": 600.0,
        "options": {"expires": 600},
    },
    "lapse requests": {
        "task": "approvals.tasks.lapse",
        "schedule": 30.0,
        "options": {"expires": 60},
    },
    "look at routes": {
        "task": "approvals.tasks.look_at_routes",
        "schedule": 60.0,
        "options": {"expires": 60},
    },
    "judge again what waits": {
        "task": "approvals.tasks.grant_if_automatic",
        "schedule": 5.0,
        "options": {"expires": 10},
    },
    "withdraw void renewals": {
        "task": "approvals.tasks.withdraw_void",
        "schedule": 5.0,
        "options": {"expires": 10},
    },
    "offer again": {
        "task": "approvals.tasks.offer_again",
        "schedule": 60.0,
        "options": {"expires": 60},
    },
    "remind of tasks": {
        "task": "manual.tasks.remind",
        "schedule": 60.0,
        "options": {"expires": 60},
    },
    "let teams leave": {
        "task": "offboarding.tasks.let_teams_leave",
        "schedule": 5.0,
        "options": {"expires": 10},
    },
    "look after runs": {
        "task": "workloads.tasks.look_after_runs",
        "schedule": 2.0,
        "options": {"expires": 10},
    },
    "follow runs": {
        "task": "workloads.tasks.follow_runs",
        "schedule": 2.0,
        "options": {"expires": 10},
    },
    "keep logs": {
        "task": "workloads.tasks.keep_logs",
        "schedule": 15.0,
        "options": {"expires": 15},
    },
    "tell of runs that reach their time limit": {
        "task": "workloads.tasks.tell_of_ends",
        "schedule": 60.0,
        "options": {"expires": 60},
    },
    "tell of runs that wait for another one for long": {
        "task": "workloads.tasks.tell_of_blocked",
        "schedule": 600.0,
        "options": {"expires": 600},
    },
    "forget old logs": {
        "task": "workloads.tasks.forget_logs",
        "schedule": 3600.0,
        "options": {"expires": 3600},
    },
    "measure the GPUs of runs and notebooks": {
        "task": "workloads.tasks.measure_gpus",
        "schedule": 60.0,
        "options": {"expires": 60},
    },
    "measure services": {
        "task": "workloads.tasks.measure_services",
        "schedule": 60.0,
        "options": {"expires": 60},
    },
    "learn what clusters run": {
        "task": "workloads.tasks.learn_abilities",
        "schedule": 5.0,
        "options": {"expires": 5},
    },
    "look after notebooks": {
        "task": "notebooks.tasks.reconcile_servers",
        "schedule": 2.0,
        "options": {"expires": 10},
    },
    "follow notebooks": {
        "task": "notebooks.tasks.follow_servers",
        "schedule": 5.0,
        "options": {"expires": 10},
    },
    "end notebooks": {
        "task": "notebooks.tasks.end_servers",
        "schedule": 30.0,
        "options": {"expires": 60},
    },
    "end notebooks with their GPUs": {
        "task": "allocations.tasks.end_notebooks",
        "schedule": 30.0,
        "options": {"expires": 60},
    },
    "look after reservations": {
        "task": "capacity.tasks.reconcile_reservations",
        "schedule": 2.0,
        "options": {"expires": 10},
    },
    "look after requests for quota": {
        "task": "capacity.tasks.reconcile_increases",
        "schedule": 5.0,
        "options": {"expires": 10},
    },
    "look after models": {
        "task": "capacity.tasks.reconcile_model_accounts",
        "schedule": 2.0,
        "options": {"expires": 10},
    },
    "look after access to the registry": {
        "task": "capacity.tasks.reconcile_registry_accesses",
        "schedule": 10.0,
        "options": {"expires": 20},
    },
    "read subscriptions": {
        "task": "capacity.tasks.observe_subscriptions",
        "schedule": 30.0,
        "options": {"expires": 60},
    },
    "read prices": {
        "task": "capacity.tasks.read_prices",
        "schedule": 60.0,
        "options": {"expires": 60},
    },
    "read the fleet's limits": {
        "task": "capacity.tasks.read_fleet",
        "schedule": 600.0,
        "options": {"expires": 600},
    },
    "forget old readings": {
        "task": "capacity.tasks.forget_readings",
        "schedule": 3600.0,
        "options": {"expires": 3600},
    },
    "look at clusters": {
        "task": "provisioning.tasks.look_at_clusters",
        "schedule": 30.0,
        "options": {"expires": 60},
    },
    "observe hubs": {
        "task": "notebooks.tasks.observe_hubs",
        "schedule": 30.0,
        "options": {"expires": 60},
    },
    "follow the directory": {
        "task": "accounts.tasks.follow_directory",
        "schedule": 30.0,
        "options": {"expires": 60},
    },
    "fill seats": {
        "task": "approvals.tasks.fill_seats",
        "schedule": 30.0,
        "options": {"expires": 60},
    },
    "forget old notices": {
        "task": "notices.tasks.forget",
        "schedule": 3600.0,
        "options": {"expires": 3600},
    },
    "forget old answers": {
        "task": "accounts.tasks.forget_old_answers",
        "schedule": 3600.0,
        "options": {"expires": 3600},
    },
    "anchor the audit log": {
        "task": "portal.tasks.anchor_audit_log",
        "schedule": 900.0,
        "options": {"expires": 900},
    },
    "check what must always hold": {
        "task": "portal.tasks.check_invariants",
        "schedule": crontab(hour=3, minute=17),
        "options": {"expires": 3600},
    },
}
