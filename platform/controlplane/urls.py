"""A page of routes: the management API, its schema, the OpenAI-shaped door, and the console's pages."""

from django.urls import include, path
from drf_spectacular.views import SpectacularAPIView, SpectacularSwaggerSplitView

from controlplane.inference.balance import BalanceApi
from controlplane.inference.level_limits import AdapterLimitsApi, LimitsApi, MemberLimitsApi
from controlplane.inference.markups import GrantMarkupApi, MarkupsApi
from controlplane.inference.near_limits import NearLimitsApi
from controlplane.inference.price_plan import PricePlanApi
from controlplane.inference.residency import ResidencyApi
from controlplane.inference.traffic import TrafficApi

handler404 = "controlplane.errors.handler404"
handler500 = "controlplane.errors.handler500"

urlpatterns = [
    path("api/v1/schema", SpectacularAPIView.as_view(permission_classes=[], authentication_classes=[]), name="schema"),
    path(
        "api/docs",
        SpectacularSwaggerSplitView.as_view(url_name="schema", permission_classes=[], authentication_classes=[]),
    ),
    # Of adapters and the engine both; before the adapters' own, which take the word for an id.
    path("api/v1/adapters/residency", ResidencyApi.as_view()),
    path("api/v1/", include("controlplane.adapters.urls")),
    path("api/v1/", include("controlplane.quotas.urls")),
    path("api/v1/", include("controlplane.billing.urls")),
    path("api/v1/", include("controlplane.batches.urls")),
    path("api/v1/adapters/<slug:adapter_id>/traffic", TrafficApi.as_view()),  # of adapters and billing
    # Of several apps at once, which know nothing of each other.
    path("api/v1/balance", BalanceApi.as_view()),
    path("api/v1/limits", LimitsApi.as_view()),
    path("api/v1/limits/near", NearLimitsApi.as_view()),
    path("api/v1/members/<slug:member_id>/limits", MemberLimitsApi.as_view()),
    path("api/v1/adapters/<slug:adapter_id>/limits", AdapterLimitsApi.as_view()),
    path("api/v1/markups", MarkupsApi.as_view()),
    path("api/v1/price-plan", PricePlanApi.as_view()),
    path("api/v1/adapters/<str:adapter_id>/grants/<str:grant_id>/markup", GrantMarkupApi.as_view()),
    path("v1/", include("controlplane.inference.urls")),
    path("", include("controlplane.console.urls")),  # and the pages: last, for it ends in a catch-all
]
