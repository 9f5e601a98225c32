import { Button, Group, List, Stack, Text, TextInput, Title } from "@mantine/core";
import { useForm } from "@mantine/form";
import { IconFile } from "@tabler/icons-react";
import { useTenant } from "../session/context";
import { formatBytes, plural } from "../shared/numbers";
import { nameProblem } from "./adapterNames";
import { useAdapters } from "./queries";
import type { AdapterFolder } from "./upload/folder";
import type { UploadRequest } from "./upload/useUpload";

interface Props {
  folder: AdapterFolder;
  onSubmit: (request: UploadRequest) => void;
  onCancel: () => void;
}

export function UploadForm({ folder, onSubmit, onCancel }: Props) {
  const { session } = useTenant();
  const adapters = useAdapters();
  const form = useForm({
    initialValues: { name: folder.suggestedName },
    validate: { name: nameProblem },
  });
  const isNewVersion = adapters.data?.some(({ name }) => name === form.values.name) ?? false;
  const submit = ({ name }: { name: string }) =>
    onSubmit({ name, baseModel: session.base_model.name, files: folder.files });
  return (
    <form onSubmit={form.onSubmit(submit)}>
      <Stack>
        <Title order={2}>Upload an adapter</Title>
        <List spacing={2} size="sm" icon={<IconFile size={16} aria-hidden />}>
          {folder.files.map((file) => (
            <List.Item key={file.name}>
              {file.name}{" "}
              <Text span c="dimmed" size="sm">
                {formatBytes(file.size)}
              </Text>
            </List.Item>
          ))}
        </List>
        {folder.ignored.length > 0 && (
          <Text size="xs" c="dimmed" lineClamp={2}>
            {`${plural(folder.ignored.length, "other file")} not needed: ${folder.ignored.join(", ")}`}
          </Text>
        )}
        <TextInput
          label="Name"
          description={
            isNewVersion
              ? `${form.values.name} exists: this becomes its next version`
              : "What programs send as the model"
          }
          maw="26rem"
          data-autofocus
          {...form.getInputProps("name")}
        />
        <Group>
          <Button type="submit">Upload</Button>
          <Button variant="default" onClick={onCancel}>
            Cancel
          </Button>
        </Group>
      </Stack>
    </form>
  );
}
