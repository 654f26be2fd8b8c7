"""Where the pages of settings live."""

from django.urls import path

from notices import views
from notices.channels import views as channel_views

urlpatterns = [
    path("settings/notices/", views.notice_settings, name="notice-settings"),
    path("settings/notices/test", views.test_mail, name="notice-test"),
    path("settings/channels/", channel_views.channels, name="channels"),
    path("settings/channels/new", channel_views.channel_new, name="channel-new"),
    path(
        "settings/channels/webhooks/new", channel_views.webhook_new, name="webhook-new"
    ),
    path("settings/channels/<int:pk>", channel_views.channel, name="channel"),
    path(
        "settings/channels/<int:pk>/secret",
        channel_views.webhook_secret,
        name="webhook-secret",
    ),
    path(
        "settings/channels/<int:pk>/test",
        channel_views.channel_test,
        name="channel-test",
    ),
    path(
        "settings/channels/<int:pk>/remove",
        channel_views.channel_remove,
        name="channel-remove",
    ),
    path("settings/deliveries/", views.deliveries, name="deliveries"),
    path(
        "settings/deliveries/<int:pk>/again",
        views.delivery_again,
        name="delivery-again",
    ),
]
