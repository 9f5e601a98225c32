from django.db import migrations

REFUSE = """
CREATE FUNCTION tenants_refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION '% is append-only', TG_TABLE_NAME USING ERRCODE = 'integrity_constraint_violation';
END $$;
CREATE TRIGGER audit_is_append_only BEFORE UPDATE OR DELETE ON tenants_auditrow
  FOR EACH ROW EXECUTE FUNCTION tenants_refuse_change();
"""
ALLOW = """
DROP TRIGGER audit_is_append_only ON tenants_auditrow;
DROP FUNCTION tenants_refuse_change();
"""


class Migration(migrations.Migration):
    dependencies = [("tenants", "0002_sign_in_attempts")]

    operations = [migrations.RunSQL(REFUSE, ALLOW)]
