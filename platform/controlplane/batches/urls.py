from django.urls import path

from controlplane.batches import api, lines_api

urlpatterns = [
    path("batches", api.BatchesApi.as_view()),
    path("batches/<str:batch_id>", api.BatchApi.as_view()),
    path("batches/<str:batch_id>/lines", lines_api.BatchLinesApi.as_view()),
    path("batches/<str:batch_id>/cancel", api.CancelBatchApi.as_view()),
]
