from django.urls import path

from controlplane.adapters import api, evaluations_api, grants_api, prompt_sets_api, shared_api

urlpatterns = [
    path("adapters", api.AdaptersApi.as_view()),
    path("adapters/import", api.ImportApi.as_view()),
    path("adapters/shared", shared_api.SharedApi.as_view()),
    path("adapters/shared/<slug:adapter_id>", shared_api.OneSharedApi.as_view()),
    path("adapters/<slug:adapter_id>", api.AdapterApi.as_view()),
    path("adapters/<slug:adapter_id>/alias", api.AliasApi.as_view()),
    path("adapters/<slug:adapter_id>/rollback", api.RollbackApi.as_view()),
    path("adapters/<slug:adapter_id>/grants", grants_api.GrantsApi.as_view()),
    path("adapters/<slug:adapter_id>/grants/<slug:grant_id>", grants_api.GrantApi.as_view()),
    path("adapters/<slug:adapter_id>/pin", api.PinApi.as_view()),
    path("adapters/<slug:adapter_id>/prompt-sets", prompt_sets_api.PromptSetsApi.as_view()),
    path("adapters/<slug:adapter_id>/evaluations", evaluations_api.EvaluationsApi.as_view()),
    path("prompt-sets/<slug:prompt_set_id>", prompt_sets_api.PromptSetApi.as_view()),
    path("evaluations/<slug:evaluation_id>", evaluations_api.EvaluationApi.as_view()),
    path("evaluations/<slug:evaluation_id>/cancel", evaluations_api.CancelEvaluationApi.as_view()),
    path("versions/<slug:version_id>", api.VersionApi.as_view()),
    path("versions/<slug:version_id>/files/<str:name>", api.VersionFileApi.as_view()),
    path("versions/<slug:version_id>/finish", api.FinishApi.as_view()),
]
