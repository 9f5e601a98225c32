"""What the door serves of files and batches, below /v1."""

from django.urls import URLPattern, path

from controlplane.batches.batches_api import all_batches, cancel, retrieve
from controlplane.batches.files_api import all_files, content, one_file

urlpatterns: list[URLPattern] = [
    path("files", all_files),
    path("files/<str:file_id>", one_file),
    path("files/<str:file_id>/content", content),
    path("batches", all_batches),
    path("batches/<str:batch_id>", retrieve),
    path("batches/<str:batch_id>/cancel", cancel),
]
