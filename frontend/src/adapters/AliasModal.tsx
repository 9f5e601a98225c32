import { Alert, Button, Group, Modal, Radio, Select, Slider, Stack, Text } from "@mantine/core";
import { messageOf } from "../api/errors";
import type { Adapter } from "../api/types";
import { notifyDone } from "../shared/confirm";
import { formatShare } from "../shared/numbers";
import { useSetAlias } from "./queries";
import { TrafficSides } from "./TrafficSides";
import { useAliasForm } from "./useAliasForm";

interface Props {
  adapter: Adapter;
  opened: boolean;
  onClose: () => void;
}

/** Which version the plain model name means, or how two versions share its traffic. */
export function AliasModal({ adapter, opened, onClose }: Props) {
  return (
    <Modal opened={opened} onClose={onClose} title={`What ${adapter.name} serves`} size="lg">
      {opened && <AliasForm adapter={adapter} onClose={onClose} />}
    </Modal>
  );
}

function options(numbers: string[]) {
  return numbers.map((value) => ({ value, label: `version ${value}` }));
}

type Form = ReturnType<typeof useAliasForm>;

function AliasForm({ adapter, onClose }: Omit<Props, "opened">) {
  const form = useAliasForm(adapter);
  const setAlias = useSetAlias(adapter);
  const save = () =>
    setAlias.mutate(form.choice, {
      onSuccess: () => {
        notifyDone(`Saved what ${adapter.name} serves.`);
        onClose();
      },
    });
  return (
    <Stack>
      <Text size="sm" c="dimmed">
        {`Requests for the model ${adapter.name} go here. A pinned name such as ${adapter.name}@${form.main} always means that version.`}
      </Text>
      {setAlias.isError && <Alert color="red">{messageOf(setAlias.error)}</Alert>}
      <ModeField form={form} />
      {form.mode !== "newest" && (
        <Select
          label="Version"
          data={options(form.ready)}
          value={form.main}
          onChange={(value) => value && form.setMain(value)}
          allowDeselect={false}
        />
      )}
      {form.mode === "split" && <Canary form={form} />}
      {(adapter.alias?.splits.length ?? 0) > 0 && <TrafficSides adapter={adapter} />}
      <Group justify="flex-end">
        <Button variant="default" onClick={onClose}>
          Cancel
        </Button>
        <Button onClick={save} loading={setAlias.isPending}>
          Save
        </Button>
      </Group>
    </Stack>
  );
}

function ModeField({ form }: { form: Form }) {
  const lacksOther = form.others.length === 0;
  return (
    <Radio.Group label="Traffic goes to" value={form.mode} onChange={form.setMode}>
      <Stack gap={6} mt={6}>
        <Radio value="newest" label="the newest version that is ready" />
        <Radio value="one" label="one version, until you change it" />
        <Radio
          value="split"
          label="two versions, by share"
          disabled={lacksOther}
          description={lacksOther ? "needs a second version that is ready" : undefined}
        />
      </Stack>
    </Radio.Group>
  );
}

function Canary({ form }: { form: Form }) {
  return (
    <>
      <Select
        label="Other version"
        data={options(form.others)}
        value={form.other}
        onChange={(value) => value && form.setOther(value)}
        allowDeselect={false}
      />
      <div>
        <Text size="sm" fw={500}>
          {`${formatShare(form.share / 100)} to version ${form.other}, ${formatShare(1 - form.share / 100)} to version ${form.main}`}
        </Text>
        <Slider
          min={1}
          max={99}
          value={form.share}
          onChange={form.setShare}
          thumbLabel="Percent to the other version"
          label={null}
        />
      </div>
    </>
  );
}
