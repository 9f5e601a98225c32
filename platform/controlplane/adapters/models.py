"""What a tenant may serve: adapters, their immutable versions, and the uploads that make them."""

from typing import ClassVar

from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Now

from controlplane.adapters.states import State
from tenants.ids import new_id
from tenants.models import Tenant, User
from tenants.scope import TenantManager


def new_adapter_id() -> str:
    return new_id("adp")


def new_version_id() -> str:
    return new_id("adv")


def new_grant_id() -> str:
    return new_id("agr")


class Adapter(models.Model):
    """A named fine-tune of a base model. Deleting frees the name; the row stays for the bills that mention it.

    follows_newest: the alias moves to each newest version that becomes ready, until somebody sets its splits.
    pinned_at: since when the versions that its name answers with keep a slot of the engine; null: they do not.
    alias_history: what the name answered with before, oldest first, each {version number: weight}; `aliases` has it.
    """

    id = models.CharField(primary_key=True, max_length=32, default=new_adapter_id, editable=False)
    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, related_name="+")
    name = models.CharField(max_length=63)
    base_model = models.CharField(max_length=100)
    follows_newest = models.BooleanField(default=True)
    pinned_at = models.DateTimeField(null=True)
    alias_history = models.JSONField(default=list)
    created_by = models.ForeignKey(User, null=True, on_delete=models.SET_NULL, related_name="+")
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    deleted_at = models.DateTimeField(null=True)

    objects = TenantManager["Adapter"]()

    class Meta:
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(
                fields=["tenant", "name"], condition=Q(deleted_at=None), name="one_live_adapter_per_name"
            ),
        ]


class AdapterVersion(models.Model):
    """One upload. Immutable once ready: a trigger refuses to change its content's identity.

    digest, rank, target_modules, invocation, uri: set when its files are found right and published; then, still
    `checking`, the engine tries it. report: {"problems": [...], "summary": text, "trial": {...}}, as far as checked.
    source: where its files are fetched from, as `sources.Source` writes it; null: they are uploaded.
    state_at: when the state was entered, or its check, trial or fetch last began. check_attempts: how often that began.
    files_released_at: when a deleted version gave up its published files (another may still have the same).
    """

    id = models.CharField(primary_key=True, max_length=32, default=new_version_id, editable=False)
    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, related_name="+")
    adapter = models.ForeignKey(Adapter, on_delete=models.PROTECT, related_name="versions")
    number = models.PositiveIntegerField()
    state = models.CharField(max_length=16, choices=State, default=State.UPLOADING)
    state_at = models.DateTimeField(db_default=Now())
    size_bytes = models.BigIntegerField()
    digest = models.CharField(max_length=64, null=True)
    rank = models.PositiveIntegerField(null=True)
    target_modules = models.JSONField(default=list)
    invocation = models.JSONField(default=list)
    source = models.JSONField(null=True)
    uri = models.TextField(null=True)
    report = models.JSONField(null=True)
    check_attempts = models.PositiveIntegerField(default=0)
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    ready_at = models.DateTimeField(null=True)
    files_released_at = models.DateTimeField(null=True)

    objects = TenantManager["AdapterVersion"]()

    class Meta:
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(fields=["adapter", "number"], name="one_version_per_number"),
            models.CheckConstraint(condition=Q(state__in=list(State)), name="version_state_is_known"),
            models.CheckConstraint(
                condition=~Q(state=State.READY) | Q(digest__isnull=False, rank__isnull=False, uri__isnull=False),
                name="a_ready_version_has_content",
            ),
        ]
        indexes: ClassVar[list[models.Index]] = [
            models.Index(fields=["digest"], name="version_digest"),
            models.Index(fields=["state", "state_at"], name="version_state"),
        ]


class VersionFile(models.Model):
    """One of a version's files as it was declared: bytes, and the SHA-256 (hex) they must have.

    Of a file that is fetched: sha256 is null until all of it is there. etag: the entity its first bytes were of.
    """

    version = models.ForeignKey(AdapterVersion, on_delete=models.CASCADE, related_name="files")
    name = models.CharField(max_length=64)
    size = models.BigIntegerField()
    sha256 = models.CharField(max_length=64, null=True)
    etag = models.CharField(max_length=200, default="")

    class Meta:
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(fields=["version", "name"], name="one_file_per_name"),
        ]


class UploadPart(models.Model):
    """Bytes [start, end) of a file lie in its staging file, fsynced. Parts of one file never overlap or touch."""

    file = models.ForeignKey(VersionFile, on_delete=models.CASCADE, related_name="parts")
    start = models.BigIntegerField()
    end = models.BigIntegerField()

    class Meta:
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(fields=["file", "start"], name="one_part_per_start"),
            models.CheckConstraint(condition=Q(start__gte=0, start__lt=F("end")), name="a_part_has_bytes"),
        ]


class AliasSplit(models.Model):
    """The adapter's bare name answers with `version` for weight / (sum of weights) of its requests."""

    adapter = models.ForeignKey(Adapter, on_delete=models.CASCADE, related_name="splits")
    version = models.ForeignKey(AdapterVersion, on_delete=models.CASCADE, related_name="+")
    weight = models.PositiveIntegerField()

    class Meta:
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(fields=["adapter", "version"], name="one_split_per_version"),
            models.CheckConstraint(condition=Q(weight__gte=1), name="a_split_has_weight"),
        ]


class AdapterGrant(models.Model):
    """`grantee` may call the adapter, as `<the tenant's slug>/<name>`, for as long as the row is there."""

    id = models.CharField(primary_key=True, max_length=32, default=new_grant_id, editable=False)
    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, related_name="+")
    adapter = models.ForeignKey(Adapter, on_delete=models.CASCADE, related_name="grants")
    grantee = models.ForeignKey(Tenant, on_delete=models.CASCADE, related_name="+")
    created_by = models.ForeignKey(User, null=True, on_delete=models.SET_NULL, related_name="+")
    created_at = models.DateTimeField(db_default=Now(), editable=False)

    objects = TenantManager["AdapterGrant"]()

    class Meta:
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(fields=["adapter", "grantee"], name="one_grant_per_tenant"),
            models.CheckConstraint(condition=~Q(tenant=F("grantee")), name="nobody_grants_to_themselves"),
        ]


class GrantParty(models.Model):
    """What a tenant is told of whom it grants to: the slug. A view of the database: the rest of the row is theirs."""

    grant = models.OneToOneField(AdapterGrant, primary_key=True, on_delete=models.DO_NOTHING, related_name="party")
    slug = models.SlugField()

    class Meta:
        managed = False
        db_table = "adapters_grantparty"


from controlplane.adapters import evaluation_models as evaluation_models  # noqa: E402  # Django finds models through this
