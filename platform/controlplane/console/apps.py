from django.apps import AppConfig


class ConsoleConfig(AppConfig):
    name = "controlplane.console"
    label = "console"

    def ready(self) -> None:
        import controlplane.console.schema  # noqa: F401  # registers itself, which needs the apps to be loaded
