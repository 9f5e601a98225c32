from django.urls import path

from controlplane.billing import agreement_api, api, invoice_api, operator_api

urlpatterns = [
    path("usage", api.UsageApi.as_view()),
    path("usage/timeseries", api.UsageSeriesApi.as_view()),
    path("prices", api.PricesApi.as_view()),
    path("statements", api.StatementsApi.as_view()),
    path("statements/<str:statement_id>", api.StatementApi.as_view()),
    path("grants", api.CreditApi.as_view()),
    path("invoices", invoice_api.InvoicesApi.as_view()),
    path("invoices/<str:invoice_id>", invoice_api.InvoiceApi.as_view()),
    path("invoices/<str:invoice_id>/pdf", invoice_api.InvoicePdfApi.as_view()),
    path("billing-profile", invoice_api.BillingProfileApi.as_view()),
    path("agreement", agreement_api.AgreementApi.as_view()),
    path("operator/tenants/<str:tenant_id>/agreements", agreement_api.TenantAgreementsApi.as_view()),
    path("operator/prices", operator_api.OperatorPricesApi.as_view()),
    path("operator/tenants/<str:tenant_id>/grants", operator_api.GrantsApi.as_view()),
    path("operator/tenants/<str:tenant_id>/close", operator_api.CloseApi.as_view()),
    path("operator/tenants/<str:tenant_id>/billing-profile", invoice_api.TenantBillingApi.as_view()),
    path("operator/tenants/<str:tenant_id>/invoices", invoice_api.TenantInvoicesApi.as_view()),
    path("operator/tenants/<str:tenant_id>/invoices/<str:invoice_id>", invoice_api.TenantInvoiceApi.as_view()),
    path("operator/tenants/<str:tenant_id>/invoices/<str:invoice_id>/pdf", invoice_api.TenantInvoicePdfApi.as_view()),
    path("operator/tenants/<str:tenant_id>/invoices/<str:invoice_id>/entries", invoice_api.InvoiceEntriesApi.as_view()),
    path("operator/discrepancies", operator_api.DiscrepanciesApi.as_view()),
    path("operator/discrepancies/<int:discrepancy_id>/resolve", operator_api.ResolveDiscrepancyApi.as_view()),
]
