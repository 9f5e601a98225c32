from django.apps import AppConfig


class InferenceConfig(AppConfig):
    name = "controlplane.inference"
    label = "inference"
