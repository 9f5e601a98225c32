from django.urls import path

from controlplane.billing import api, operator_api

urlpatterns = [
    path("usage", api.UsageApi.as_view()),
    path("usage/timeseries", api.UsageSeriesApi.as_view()),
    path("prices", api.PricesApi.as_view()),
    path("statements", api.StatementsApi.as_view()),
    path("statements/<str:statement_id>", api.StatementApi.as_view()),
    path("operator/prices", operator_api.OperatorPricesApi.as_view()),
    path("operator/tenants/<str:tenant_id>/grants", operator_api.GrantsApi.as_view()),
    path("operator/tenants/<str:tenant_id>/close", operator_api.CloseApi.as_view()),
    path("operator/discrepancies", operator_api.DiscrepanciesApi.as_view()),
    path("operator/discrepancies/<int:discrepancy_id>/resolve", operator_api.ResolveDiscrepancyApi.as_view()),
]
