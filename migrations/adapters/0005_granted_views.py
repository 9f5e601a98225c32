"""What the two sides of a grant see of each other: these columns, and no row of the other's.

A view reads as its owner, who sees all rows; its own condition, and the barrier, narrow them to the scope's tenant.
"""

import django.db.models.deletion
from django.db import migrations, models

VIEWS = """
CREATE VIEW adapters_grantedversion WITH (security_barrier) AS
SELECT given.grantee_id, owner.slug AS owner, adapter.id AS adapter_id, adapter.name, adapter.base_model,
    version.id AS version_id, version.number, version.uri, version.digest, version.rank, version.ready_at, split.weight
FROM adapters_adaptergrant given
JOIN adapters_adapter adapter ON adapter.id = given.adapter_id AND adapter.deleted_at IS NULL
JOIN tenants_tenant owner ON owner.id = given.tenant_id AND owner.is_active
JOIN adapters_adapterversion version ON version.adapter_id = adapter.id AND version.state = 'ready'
LEFT JOIN adapters_aliassplit split ON split.adapter_id = adapter.id AND split.version_id = version.id
WHERE given.grantee_id = current_setting('veneer.tenant', true) OR current_user = 'veneer_operator';

CREATE VIEW adapters_grantparty WITH (security_barrier) AS
SELECT given.id AS grant_id, grantee.slug
FROM adapters_adaptergrant given JOIN tenants_tenant grantee ON grantee.id = given.grantee_id
WHERE given.tenant_id = current_setting('veneer.tenant', true) OR current_user = 'veneer_operator';
"""


class Migration(migrations.Migration):
    dependencies = [("adapters", "0004_imports_grants_and_trials")]

    operations = [
        migrations.RunSQL(VIEWS, "DROP VIEW adapters_grantedversion, adapters_grantparty"),
        migrations.CreateModel(
            name="GrantParty",
            fields=[
                (
                    "grant",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        primary_key=True,
                        related_name="party",
                        serialize=False,
                        to="adapters.adaptergrant",
                    ),
                ),
                ("slug", models.SlugField()),
            ],
            options={"db_table": "adapters_grantparty", "managed": False},
        ),
    ]
