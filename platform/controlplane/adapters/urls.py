from django.urls import path

from controlplane.adapters import api

urlpatterns = [
    path("adapters", api.AdaptersApi.as_view()),
    path("adapters/<str:adapter_id>", api.AdapterApi.as_view()),
    path("adapters/<str:adapter_id>/alias", api.AliasApi.as_view()),
    path("versions/<str:version_id>", api.VersionApi.as_view()),
    path("versions/<str:version_id>/files/<str:name>", api.VersionFileApi.as_view()),
    path("versions/<str:version_id>/finish", api.FinishApi.as_view()),
]
