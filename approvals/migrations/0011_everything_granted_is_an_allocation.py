"""What was granted without GPUs of a pool becomes an allocation, and every allocation says of which offering it is."""

from decimal import Decimal

from django.db import migrations

WORDS = {"dev": "Development", "test": "Test", "production": "Production"}
CENTS = Decimal("0.00000001")
BATCH = 500


def title(request):
    spec, count = request.spec, request.approved_count
    if request.offering == "volume":
        return f"{count:,} GiB volume {spec['name']}"
    if request.offering == "namespace":
        return f"{WORDS[spec['environment']]} namespace for {spec['project']}"
    if request.offering == "openai":
        return f"{spec['model']} with {count:,}k tokens a minute"
    if request.offering == "reservation":
        return f"{count:,} × {spec['vm_size']} reserved"
    return f"Cluster of {count:,} × {spec['vm_size']}"


def end_of(request, tasks):
    """When and why it ended, as its tasks say; nothing for what is still held."""
    down, up = tasks.get("take_down"), tasks.get("set_up")
    if down is not None:
        return min(
            down.created_at, request.until
        ), "expired" if down.created_at >= request.until else "returned"
    if up is not None and up.state in ("failed", "dropped"):
        return up.done_at, "returned" if up.done_at < request.until else "expired"
    return None, ""


def take_over(apps, schema_editor):
    Allocation = apps.get_model("allocations", "Allocation")
    Request = apps.get_model("approvals", "Request")
    Task = apps.get_model("approvals", "Task")
    tasks = {}
    for task in Task.objects.exclude(request=None).iterator():
        tasks.setdefault(task.request_id, {})[task.kind] = task
    for request in Request.objects.filter(state="approved").exclude(offering="gpus").iterator(BATCH):
        own = tasks.get(request.pk, {})
        up = own.get("set_up")
        reference = f"request-{request.pk}"
        changed = {"offering": request.offering, "provisioner": "kubernetes" if up is None else "manual"}
        if up is not None and up.state in ("open", "taken"):
            changed["charged_from"] = None
        if Allocation.objects.filter(reference=reference).update(**changed) or request.flavor_id is not None:
            continue
        starts = request.decided_at or request.created_at
        if starts >= request.until:
            continue
        hours = Decimal(int((request.until - request.created_at).total_seconds())) / 3600
        paid = request.usd * request.approved_count / request.count
        ended, reason = end_of(request, own)
        charged = starts if up is None else up.done_at if up.state == "done" else None
        Allocation.objects.create(
            team_id=request.team_id,
            tenancy_id=request.tenancy_id,
            reference=reference,
            title=title(request),
            place=str(request.spec.get("cluster") or request.spec.get("region") or ""),
            gpus=request.gpus // request.count * request.approved_count,
            price_per_gpu_hour=0,
            usd_per_hour=(paid / hours).quantize(CENTS),
            starts_at=starts,
            until=request.until,
            kept_until=request.until,
            ended_at=ended,
            end_reason=reason,
            ended_by="portal" if ended else "",
            **{"charged_from": charged, **changed},
        )


class Migration(migrations.Migration):
    dependencies = [
        ("allocations", "0006_what_was_granted_besides_gpus"),
        ("approvals", "0010_a_request_moves_only_as_it_may"),
    ]

    operations = [migrations.RunPython(take_over, migrations.RunPython.noop, elidable=True)]
