"""Where the pages of approvals live."""

from django.urls import path

from approvals.conversation import views as talk_views
from approvals.decisions import bulk_views, decided
from approvals.decisions import views as approval_views
from approvals.fulfilment import views as task_views
from approvals.policy_desk import views as policy_views
from approvals.renewals import views as renew_views
from approvals.request_form import views as form_views
from approvals.requests import views
from approvals.shares import views as share_views
from approvals.stand_ins import views as stand_in_views
from catalogue import views as catalogue_views

urlpatterns = [
    path("requests/", views.requests, name="requests"),
    path("requests/new", form_views.request_new, {"key": "gpus"}, name="request-new"),
    path("requests/new/<slug:key>", form_views.request_new, name="request-new"),
    path(
        "requests/preview/<slug:key>",
        form_views.request_preview,
        name="request-preview",
    ),
    path("requests/<int:pk>/", views.request, name="request"),
    path("requests/<int:pk>/let-go", task_views.let_go, name="request-let-go"),
    path("requests/<int:pk>/edit", talk_views.edit, name="request-edit"),
    path("requests/<int:pk>/comment", talk_views.comment, name="request-comment"),
    path("requests/<int:pk>/withdraw", views.withdraw, name="request-withdraw"),
    path("requests/<int:pk>/answer", views.answer, name="request-answer"),
    path("allocations/<int:pk>/renew", renew_views.renew, name="renew"),
    path("approvals/", approval_views.approvals, name="approvals"),
    path("approvals/<int:pk>/", approval_views.approval, name="approval"),
    path("approvals/together", bulk_views.together, name="approvals-together"),
    path(
        "approvals/statistics",
        bulk_views.decision_statistics,
        name="approval-statistics",
    ),
    path("approvals/decisions.csv", decided.decisions_file, name="decisions-file"),
    path("stand-in/", stand_in_views.stand_in, name="stand-in"),
    path(
        "stand-in/<int:pk>/accept",
        stand_in_views.answer,
        {"said": "accept"},
        name="stand-in-accept",
    ),
    path(
        "stand-in/<int:pk>/decline",
        stand_in_views.answer,
        {"said": "decline"},
        name="stand-in-decline",
    ),
    path("stand-in/<int:pk>/end", stand_in_views.end, name="stand-in-end"),
    path("policy/", approval_views.policy, name="policy"),
    path("policy/export.yaml", policy_views.export, name="policy-export"),
    path("policy/import", policy_views.take_in, name="policy-import"),
    path("policy/versions/", policy_views.versions, name="policy-versions"),
    path("policy/versions/<int:number>/", policy_views.version, name="policy-version"),
    path(
        "policy/versions/<int:number>/cancel", policy_views.cancel, name="policy-cancel"
    ),
    path("policy/drafts/", policy_views.drafts, name="policy-drafts"),
    path("policy/drafts/<int:pk>/", policy_views.draft, name="policy-draft"),
    path(
        "policy/drafts/<int:pk>/take-over",
        policy_views.take_over,
        name="policy-take-over",
    ),
    path("policy/drafts/<int:pk>/hand-in", policy_views.hand_in, name="policy-hand-in"),
    path("policy/drafts/<int:pk>/discard", policy_views.discard, name="policy-discard"),
    path(
        "policy/drafts/<int:pk>/activate", policy_views.activate, name="policy-activate"
    ),
    path("catalogue/", catalogue_views.catalogue, name="catalogue"),
    path("catalogue/<slug:key>/", catalogue_views.offering, name="offering"),
    path("tenancies/<int:pk>/shares", share_views.shares, name="tenancy-shares"),
    path("tasks/", task_views.tasks, name="tasks"),
    path("tasks/<int:pk>/", task_views.task, name="task"),
]
