import { PasswordInput, TextInput } from "@mantine/core";
import { useForm } from "@mantine/form";
import { notifyDone } from "../shared/confirm";
import { FormModal } from "../shared/FormModal";
import { useCreateTenant } from "./queries";

const SLUG = /^[a-z0-9-]{1,50}$/;

interface Props {
  opened: boolean;
  onClose: () => void;
}

export function NewTenantModal({ opened, onClose }: Props) {
  const create = useCreateTenant();
  const form = useForm({
    initialValues: { name: "", slug: "", admin_email: "", admin_password: "" },
    validate: {
      name: (value) => (value.trim() ? null : "Name the tenant"),
      slug: (value) => (SLUG.test(value) ? null : "Use lower-case letters, digits and dashes"),
      admin_email: (value) =>
        /^\S+@\S+$/.test(value) ? null : "Enter the address of the tenant's owner",
    },
  });
  const close = () => {
    form.reset();
    create.reset();
    onClose();
  };
  const submit = ({ admin_password: password, ...values }: typeof form.values) =>
    create.mutate(password ? { ...values, admin_password: password } : values, {
      onSuccess: (tenant) => {
        notifyDone(`${tenant.name} is created; ${tenant.admin.email} owns it.`);
        close();
      },
    });
  return (
    <FormModal
      title="New tenant"
      opened={opened}
      onClose={close}
      onSubmit={form.onSubmit(submit)}
      submit="Create the tenant"
      pending={create.isPending}
      error={create.error}
    >
      <TextInput label="Name" data-autofocus {...form.getInputProps("name")} />
      <TextInput
        label="Short name"
        description="In addresses and logs; it does not change"
        {...form.getInputProps("slug")}
      />
      <TextInput label="Owner's e-mail" type="email" {...form.getInputProps("admin_email")} />
      <PasswordInput
        label="Owner's first password"
        description="Leave it empty where the person has an account already"
        autoComplete="new-password"
        {...form.getInputProps("admin_password")}
      />
    </FormModal>
  );
}
