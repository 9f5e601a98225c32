from django.urls import path

from controlplane.quotas import api

urlpatterns = [
    path("operator/tenants/<str:tenant_id>/limits", api.TenantLimitsApi.as_view()),
    path("keys/<str:key_id>/limits", api.KeyLimitsApi.as_view()),
]
