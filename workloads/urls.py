"""Where the pages of work live."""

from django.urls import path

from workloads import queue_page, views
from workloads.choosing import views as choosing
from workloads.notebook_pages import views as notebooks
from workloads.runs.pages import time_limit
from workloads.runs.pages import views as runs
from workloads.service_levels import views as service_levels
from workloads.template_desk import views as templates

urlpatterns = [
    path("clusters/<slug:name>/queue", queue_page.queue, name="queue"),
    path("teams/<slug:slug>/work", views.work, name="work"),
    path("teams/<slug:slug>/work/stop", views.work_stop, name="work-stop"),
    path("teams/<slug:slug>/runs", runs.runs, name="runs"),
    path("teams/<slug:slug>/runs/new", runs.run_new, name="run-new"),
    path("teams/<slug:slug>/runs/new/preview", runs.run_preview, name="run-preview"),
    path("teams/<slug:slug>/notebooks", notebooks.notebooks, name="notebooks"),
    path("notebooks/<int:pk>", notebooks.notebook, name="notebook"),
    path("notebooks/<int:pk>/stop", notebooks.notebook_stop, name="notebook-stop"),
    path("notebooks/<int:pk>/start", notebooks.notebook_start, name="notebook-start"),
    path("notebooks/<int:pk>/keep", notebooks.notebook_keep, name="notebook-keep"),
    path(
        "notebooks/<int:pk>/exempt", notebooks.notebook_exempt, name="notebook-exempt"
    ),
    path(
        "notebooks/<int:pk>/exempt/end",
        notebooks.notebook_exempt_end,
        name="notebook-exempt-end",
    ),
    path(
        "notebooks/<int:pk>/remove", notebooks.notebook_remove, name="notebook-remove"
    ),
    path(
        "profiles/<slug:slug>/devcontainer.json",
        choosing.profile_devcontainer,
        name="profile-devcontainer",
    ),
    path(
        "devcontainers/<str:token>/<slug:slug>.git/<path:path>",
        choosing.devcontainer_repository,
        name="devcontainer-repository",
    ),
    path(
        "capacity/service-levels", service_levels.service_levels, name="service-levels"
    ),
    path(
        "teams/<slug:slug>/service-levels/new",
        service_levels.service_level_new,
        name="service-level-new",
    ),
    path(
        "requests/<int:pk>/service-level",
        service_levels.request_service_level,
        name="request-service-level",
    ),
    path(
        "capacity/service-levels/<int:pk>",
        service_levels.service_level,
        name="service-level",
    ),
    path(
        "capacity/service-levels/<int:pk>/change",
        service_levels.service_level_change,
        name="service-level-change",
    ),
    path(
        "capacity/service-levels/<int:pk>/remove",
        service_levels.service_level_remove,
        name="service-level-remove",
    ),
    path("templates", templates.templates, name="templates"),
    path("templates/new", templates.template_new, name="template-new"),
    path("templates/import", templates.templates_import, name="templates-import"),
    path("templates/export", templates.templates_export, name="templates-export"),
    path("templates/<slug:slug>", templates.template, name="template"),
    path(
        "templates/<slug:slug>/take-back",
        templates.template_take_back,
        name="template-take-back",
    ),
    path("runs/<int:pk>", runs.run, name="run"),
    path("runs/<int:pk>/log", runs.run_log, name="run-log"),
    path("runs/<int:pk>/stop", runs.run_stop, name="run-stop"),
    path("runs/<int:pk>/limit", time_limit.run_limit, name="run-limit"),
    path("runs/<int:pk>/again", runs.run_again, name="run-again"),
    path("runs/<int:pk>/resume", runs.run_resume, name="run-resume"),
]
