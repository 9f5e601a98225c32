import { Alert, Button, Card, Group, Stack, Textarea, TextInput } from "@mantine/core";
import { useForm } from "@mantine/form";
import { IconCloudDownload } from "@tabler/icons-react";
import { messageOf } from "../api/errors";
import { useTenant } from "../session/context";
import { notifyDone } from "../shared/confirm";
import { nameProblem } from "./adapterNames";
import { useImport } from "./queries";
import { adapterName } from "./upload/folder";

const FILE_ENDINGS = /\.(json|safetensors)$/;

/** One address a line. A name from the last part of the first that is not a file's. */
export function sourceOf(text: string): string | string[] {
  const lines = text.split(/\s+/).filter(Boolean);
  return lines.length === 1 ? (lines[0] ?? "") : lines;
}

export function suggestedName(text: string): string {
  const first = text.trim().split(/\s+/)[0] ?? "";
  const parts = first
    .replace(/[?#].*$/, "")
    .replace(/@[^/]*$/, "")
    .split("/");
  return adapterName(parts.filter((part) => part && !FILE_ENDINGS.test(part)).at(-1) ?? "");
}

/** The server fetches the files itself; how far it is shows at the adapter. */
export function ImportForm() {
  const { session } = useTenant();
  const start = useImport();
  const form = useForm({
    initialValues: { source: "", name: "" },
    validate: {
      source: (value) => (value.trim() ? null : "Say where the adapter is"),
      name: nameProblem,
    },
  });
  const submit = ({ source, name }: { source: string; name: string }) =>
    start.mutate(
      { name, base_model: session.base_model.name, source: sourceOf(source) },
      {
        onSuccess: ({ version }) => {
          notifyDone(`Version ${version.number} of ${name} is being fetched.`);
          form.reset();
        },
      },
    );
  const suggest = () => {
    if (form.values.name === "") form.setFieldValue("name", suggestedName(form.values.source));
  };
  return (
    <Card withBorder>
      <form onSubmit={form.onSubmit(submit)}>
        <Stack>
          {start.isError && (
            <Alert color="red" role="alert">
              {messageOf(start.error)}
            </Alert>
          )}
          <Textarea
            label="Where it is"
            description="The https URL of a folder, the URLs of its files one a line, s3://bucket/prefix, or org/name[@revision] of the hub"
            placeholder="https://example.com/adapters/support-bot"
            autosize
            minRows={1}
            maxRows={6}
            {...form.getInputProps("source")}
            onBlur={suggest}
          />
          <TextInput
            label="Name"
            description="What programs send as the model"
            maw="26rem"
            {...form.getInputProps("name")}
          />
          <Group>
            <Button
              type="submit"
              loading={start.isPending}
              leftSection={<IconCloudDownload size={16} aria-hidden />}
            >
              Fetch it
            </Button>
          </Group>
        </Stack>
      </form>
    </Card>
  );
}
