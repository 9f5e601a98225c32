from django.db import migrations

REFUSE = """
CREATE FUNCTION adapters_refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION 'adapter version % is immutable', OLD.id USING ERRCODE = 'integrity_constraint_violation';
END $$;
CREATE TRIGGER ready_version_is_immutable BEFORE UPDATE ON adapters_adapterversion
  FOR EACH ROW WHEN (
    OLD.ready_at IS NOT NULL
    AND (OLD.tenant_id, OLD.adapter_id, OLD.number, OLD.digest, OLD.rank, OLD.uri, OLD.size_bytes, OLD.target_modules,
         OLD.ready_at)
        IS DISTINCT FROM
        (NEW.tenant_id, NEW.adapter_id, NEW.number, NEW.digest, NEW.rank, NEW.uri, NEW.size_bytes, NEW.target_modules,
         NEW.ready_at)
  ) EXECUTE FUNCTION adapters_refuse_change();
"""
ALLOW = """
DROP TRIGGER ready_version_is_immutable ON adapters_adapterversion;
DROP FUNCTION adapters_refuse_change();
"""


class Migration(migrations.Migration):
    dependencies = [("adapters", "0001_initial")]

    operations = [migrations.RunSQL(REFUSE, ALLOW)]
