"""A tenant's own identity provider (OpenID Connect): what is known of it, and who of its people is who of ours."""

from typing import ClassVar

from django.db import models
from django.db.models.functions import Now

from tenants.ids import new_id
from tenants.scope import TenantManager

TENANT, USER = "tenants.Tenant", "tenants.User"


def new_provider_id() -> str:
    return new_id("idp")


def new_domain_id() -> str:
    return new_id("dom")


def new_link_id() -> str:
    return new_id("lnk")


class IdentityProvider(models.Model):
    """issuer: as the provider itself writes it. sealed_secret: `tenants.sealing`. endpoints: of its discovery document,
    as it was when this was saved. default_role: of people who join by signing in. `Tenant.requires_single_sign_on` says
    whether members must use it."""

    id = models.CharField(primary_key=True, max_length=32, default=new_provider_id, editable=False)
    tenant = models.OneToOneField(TENANT, on_delete=models.CASCADE, related_name="+")
    issuer = models.CharField(max_length=500)
    client_id = models.CharField(max_length=255)
    sealed_secret = models.TextField()
    endpoints = models.JSONField()
    default_role = models.CharField(max_length=16)
    created_at = models.DateTimeField(db_default=Now(), editable=False)

    objects = TenantManager["IdentityProvider"]()


class SignInDomain(models.Model):
    """E-mail addresses that a tenant's provider may vouch for. token: what its website must show to prove that the
    domain is the tenant's. confirmed_at: when it did; then people may join by signing in, and find their provider by
    their address."""

    id = models.CharField(primary_key=True, max_length=32, default=new_domain_id, editable=False)
    tenant = models.ForeignKey(TENANT, on_delete=models.CASCADE, related_name="+")
    name = models.CharField(max_length=253)
    token = models.CharField(max_length=64)
    confirmed_at = models.DateTimeField(null=True)
    created_at = models.DateTimeField(db_default=Now(), editable=False)

    objects = TenantManager["SignInDomain"]()

    class Meta:
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(fields=["tenant", "name"], name="one_row_per_sign_in_domain"),
            models.UniqueConstraint(
                fields=["name"], condition=models.Q(confirmed_at__isnull=False), name="a_domain_is_one_tenants"
            ),
        ]


class LinkedIdentity(models.Model):
    """Who at the provider is who here. subject: the provider's own name for them, which an address is not: addresses
    are given to others. Bound to the issuer, so that another provider in its place knows nobody."""

    id = models.CharField(primary_key=True, max_length=32, default=new_link_id, editable=False)
    tenant = models.ForeignKey(TENANT, on_delete=models.CASCADE, related_name="+")
    provider = models.ForeignKey(IdentityProvider, on_delete=models.CASCADE, related_name="links")
    issuer = models.CharField(max_length=500)
    subject = models.CharField(max_length=255)
    user = models.ForeignKey(USER, on_delete=models.CASCADE, related_name="linked_identities")
    created_at = models.DateTimeField(db_default=Now(), editable=False)

    objects = TenantManager["LinkedIdentity"]()

    class Meta:
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(fields=["provider", "issuer", "subject"], name="one_person_per_subject"),
            models.UniqueConstraint(fields=["provider", "user"], name="one_subject_per_person"),
        ]
