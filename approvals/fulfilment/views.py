"""What people carry out: the list of tasks, and taking, giving and finishing one."""

from typing import Any

from django import forms
from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import get_object_or_404, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import (
    require_http_methods,
    require_POST,
    require_safe,
)

from accounts.current_user import add_refusal, visitor, with_refusal
from accounts.models import User
from accounts.roles import Permission
from allocations.forms import LetGoForm
from approvals.fulfilment import actions as fulfilment
from approvals.fulfilment import page as task_page
from approvals.models import Request
from manual import actions as task_actions
from manual.models import Task
from web.fields import StrictForm
from web.refusals import BadInput, Refused

DOES = {
    "take": "It is yours",
    "free": "It is nobody’s again",
    "give": "Given",
    "done": "Done",
    "cannot": "Noted",
}


class TaskForm(StrictForm):
    """What somebody does about the version of a task that they saw."""

    do = forms.ChoiceField(choices=list(DOES.items()))
    version = forms.IntegerField(min_value=1, max_value=2_000_000_000, required=False)
    to = forms.ModelChoiceField(User.objects.all(), required=False, label="To")
    note = forms.CharField(label="Note", required=False, max_length=2000)


@require_safe
def tasks(request: HttpRequest) -> HttpResponse:
    """What is to be done, what is mine, what is over."""
    user, now = _lead(request), timezone.now()
    tab = request.GET.get("show", "open")
    tab = tab if tab in task_page.TABS else "open"
    rows = list(task_page.rows_of(tab, user)[: task_page.MOST_SHOWN])
    tabs = [
        {"label": label, "href": f"?show={name}", "current": name == tab}
        for name, label in task_page.TABS.items()
    ]
    context = {
        "tabs": tabs,
        "tab": tab,
        "columns": task_page.COLUMNS,
        "rows": [task_page.row(each, now=now) for each in rows],
    }
    return render(request, "approvals/tasks.html", context)


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def task(request: HttpRequest, pk: int) -> HttpResponse:
    """One task; POST takes it, gives it to somebody, or finishes it."""
    user = _lead(request)
    found = _find(pk)
    if request.method != "POST":
        return _page(request, found, TaskForm())
    form, status = TaskForm(request.POST), 422
    if form.is_valid():
        try:
            act(found, form.cleaned_data, by=user)
            messages.success(
                request, f"{DOES[form.cleaned_data['do']]}: {found.words}."
            )
            return HttpResponseRedirect(_after(found))
        except Refused as refusal:
            status = add_refusal(form, refusal)
            found = _find(pk)
    return with_refusal(_page(request, found, form, status=status), form)


@require_POST
def let_go(request: HttpRequest, pk: int) -> HttpResponse:
    """End what takes no GPUs before its date, or cancel a booking; who is not of the team says why."""
    user = visitor(request)
    asked = get_object_or_404(Request.objects.visible_to(user), pk=pk)
    form = LetGoForm(request.POST, is_member=asked.team_id in user.team_ids)
    response = HttpResponseRedirect(reverse("request", args=[pk]))
    try:
        if not form.is_valid():
            raise BadInput(_first_error(form), code="invalid")
        fulfilment.release(
            asked.pk,
            by=user,
            now=timezone.now(),
            reason=form.cleaned_data.get("reason", ""),
        )
        messages.success(request, "Let go of. What it will not cost is free again.")
    except Refused as refusal:
        messages.error(request, refusal.message)
        response.refusal = {"detail": refusal.message, "code": refusal.code}  # type: ignore[attr-defined]
    return response


def _first_error(form: forms.Form) -> str:
    [first, *_] = [str(each) for errors in form.errors.values() for each in errors]
    return first


def act(found: Task, said: dict[str, Any], *, by: User) -> Task:
    """Do what a clean form says; raises Refused."""
    now, version = timezone.now(), said["version"]
    if said["do"] in ("done", "cannot"):
        failed = said["do"] == "cannot"
        return fulfilment.finish(
            found.pk,
            by=by,
            note=said["note"],
            failed=failed,
            expected_version=version,
            now=now,
        )
    to = {"take": by, "free": None, "give": said["to"]}[said["do"]]
    return task_actions.take(found.pk, to=to, by=by, expected_version=version, now=now)


def _find(pk: int) -> Task:
    return get_object_or_404(Task.objects.described(), pk=pk)


def _after(found: Task) -> str:
    """The page of what it was done for."""
    if found.request_number is None:
        return reverse("team", args=[found.team.slug])
    return reverse("request", args=[found.request_number])


def _page(
    request: HttpRequest, found: Task, form: TaskForm, *, status: int = 200
) -> HttpResponse:
    context = task_page.context(found, viewer=visitor(request)) | {
        "form": form,
        "note": form.data.get("note", ""),
    }
    return render(request, "approvals/task.html", context, status=status)


def _lead(request: HttpRequest) -> User:
    user = visitor(request)
    if not user.may(Permission.DECIDE_AS_PLATFORM):
        raise PermissionDenied("Platform leads carry tasks out.")
    return user
