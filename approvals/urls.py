"""Where the pages of approvals live."""

from django.urls import path

from approvals import approval_views, bulk_views, request_form, views

urlpatterns = [
    path("requests/", views.requests, name="requests"),
    path("requests/new", request_form.request_new, name="request-new"),
    path("requests/preview", request_form.request_preview, name="request-preview"),
    path("requests/<int:pk>/", views.request, name="request"),
    path("requests/<int:pk>/withdraw", views.withdraw, name="request-withdraw"),
    path("requests/<int:pk>/answer", views.answer, name="request-answer"),
    path("approvals/", approval_views.approvals, name="approvals"),
    path("approvals/<int:pk>/", approval_views.approval, name="approval"),
    path("approvals/together", bulk_views.together, name="approvals-together"),
    path("approvals/statistics", bulk_views.decision_statistics, name="approval-statistics"),
    path("policy/", approval_views.policy, name="policy"),
]
