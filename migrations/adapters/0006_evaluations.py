import django.db.models.deletion
import django.db.models.functions.datetime
from django.conf import settings
from django.db import migrations, models

import controlplane.adapters.evaluation_models
from controlplane.adapters.evaluation_models import new_evaluation_id, new_set_id

NOW = django.db.models.functions.datetime.Now()
PROTECT, SET_NULL = django.db.models.deletion.PROTECT, django.db.models.deletion.SET_NULL
CASCADE = django.db.models.deletion.CASCADE
STATES = [("running", "Running"), ("done", "Done"), ("cancelled", "Cancelled"), ("failed", "Failed")]


class Migration(migrations.Migration):
    dependencies = [
        ("adapters", "0005_granted_views"),
        ("tenants", "0009_acting_for_tenants"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="PromptSet",
            fields=[
                (
                    "id",
                    models.CharField(
                        default=new_set_id, editable=False, max_length=32, primary_key=True, serialize=False
                    ),
                ),
                ("name", models.CharField(max_length=63)),
                ("prompts", models.JSONField()),
                ("created_at", models.DateTimeField(db_default=NOW, editable=False)),
                (
                    "adapter",
                    models.ForeignKey(on_delete=PROTECT, related_name="prompt_sets", to="adapters.adapter"),
                ),
                (
                    "created_by",
                    models.ForeignKey(null=True, on_delete=SET_NULL, related_name="+", to=settings.AUTH_USER_MODEL),
                ),
                ("tenant", models.ForeignKey(on_delete=PROTECT, related_name="+", to="tenants.tenant")),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("adapter", "name"), name="one_prompt_set_per_name"),
                ],
            },
        ),
        migrations.CreateModel(
            name="Evaluation",
            fields=[
                (
                    "id",
                    models.CharField(
                        default=new_evaluation_id, editable=False, max_length=32, primary_key=True, serialize=False
                    ),
                ),
                ("prompt_set_name", models.CharField(max_length=63)),
                ("max_tokens", models.PositiveIntegerField()),
                ("state", models.CharField(choices=STATES, default="running", max_length=16)),
                ("total", models.PositiveIntegerField()),
                ("tally", models.JSONField(default=controlplane.adapters.evaluation_models.no_tally)),
                ("failure", models.JSONField(null=True)),
                ("leased_until", models.DateTimeField(null=True)),
                ("created_at", models.DateTimeField(db_default=NOW, editable=False)),
                ("ended_at", models.DateTimeField(null=True)),
                (
                    "adapter",
                    models.ForeignKey(on_delete=PROTECT, related_name="evaluations", to="adapters.adapter"),
                ),
                (
                    "baseline",
                    models.ForeignKey(null=True, on_delete=PROTECT, related_name="+", to="adapters.adapterversion"),
                ),
                (
                    "candidate",
                    models.ForeignKey(on_delete=PROTECT, related_name="+", to="adapters.adapterversion"),
                ),
                (
                    "created_by",
                    models.ForeignKey(null=True, on_delete=SET_NULL, related_name="+", to=settings.AUTH_USER_MODEL),
                ),
                ("key", models.ForeignKey(on_delete=PROTECT, related_name="+", to="tenants.apikey")),
                (
                    "prompt_set",
                    models.ForeignKey(null=True, on_delete=SET_NULL, related_name="+", to="adapters.promptset"),
                ),
                ("tenant", models.ForeignKey(on_delete=PROTECT, related_name="+", to="tenants.tenant")),
            ],
            options={
                "indexes": [
                    models.Index(
                        condition=models.Q(("state", "running")), fields=["leased_until"], name="running_evaluations"
                    ),
                ],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("state__in", ["running", "done", "cancelled", "failed"])),
                        name="evaluation_state_is_known",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("ended_at", None), ("state", "running")),
                            models.Q(models.Q(("state", "running"), _negated=True), ("ended_at__isnull", False)),
                            _connector="OR",
                        ),
                        name="an_evaluation_ends_once",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="EvaluationCase",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("number", models.PositiveIntegerField()),
                ("prompt", models.JSONField()),
                ("candidate_answer", models.JSONField(null=True)),
                ("baseline_answer", models.JSONField(null=True)),
                ("tries", models.PositiveIntegerField(default=0)),
                (
                    "evaluation",
                    models.ForeignKey(on_delete=CASCADE, related_name="cases", to="adapters.evaluation"),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("evaluation", "number"), name="one_case_per_number"),
                ],
            },
        ),
    ]
