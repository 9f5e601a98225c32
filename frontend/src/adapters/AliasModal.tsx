import { Alert, Button, Group, Modal, Select, Slider, Stack, Switch, Text } from "@mantine/core";
import { useState } from "react";
import { messageOf } from "../api/errors";
import type { Adapter, Split } from "../api/types";
import { notifyDone } from "../shared/confirm";
import { useSetAlias } from "./queries";
import { readyVersions } from "./versions";

interface Props {
  adapter: Adapter;
  opened: boolean;
  onClose: () => void;
}

/** Which version the plain model name means, or how two versions share its traffic. */
export function AliasModal({ adapter, opened, onClose }: Props) {
  return (
    <Modal opened={opened} onClose={onClose} title={`What ${adapter.name} serves`}>
      {opened && <AliasForm adapter={adapter} onClose={onClose} />}
    </Modal>
  );
}

function AliasForm({ adapter, onClose }: Omit<Props, "opened">) {
  const ready = readyVersions(adapter).map(({ number }) => String(number));
  const [first, second] = adapter.alias?.splits ?? [];
  const [main, setMain] = useState(String(first?.version ?? ready[0] ?? ""));
  const [isSplit, setSplit] = useState(second !== undefined);
  const others = ready.filter((number) => number !== main);
  const [chosenOther, setOther] = useState(second ? String(second.version) : "");
  const other = others.includes(chosenOther) ? chosenOther : (others[0] ?? "");
  const [share, setShare] = useState(second?.weight ?? 10);
  const setAlias = useSetAlias(adapter);
  const split = isSplit && other !== "";
  const splits: Split[] = split
    ? [
        { version: Number(main), weight: 100 - share },
        { version: Number(other), weight: share },
      ]
    : [{ version: Number(main), weight: 100 }];
  const save = () =>
    setAlias.mutate(splits, {
      onSuccess: () => {
        notifyDone(`${adapter.name} now serves the chosen version.`);
        onClose();
      },
    });
  const options = (numbers: string[]) =>
    numbers.map((value) => ({ value, label: `version ${value}` }));
  return (
    <Stack>
      <Text size="sm" c="dimmed">
        {`Requests for the model ${adapter.name} go here. A pinned name such as ${adapter.name}@${main} always means that version.`}
      </Text>
      {setAlias.isError && <Alert color="red">{messageOf(setAlias.error)}</Alert>}
      <Select
        label="Version"
        data={options(ready)}
        value={main}
        onChange={(value) => value && setMain(value)}
        allowDeselect={false}
      />
      <Switch
        label="Send part of the traffic to another version"
        checked={split}
        disabled={others.length === 0}
        description={others.length === 0 ? "Needs a second version that is ready" : undefined}
        onChange={(event) => setSplit(event.currentTarget.checked)}
      />
      {split && (
        <>
          <Select
            label="Other version"
            data={options(others)}
            value={other}
            onChange={(value) => value && setOther(value)}
            allowDeselect={false}
          />
          <div>
            <Text size="sm" fw={500}>
              {`${share} % to version ${other}, ${100 - share} % to version ${main}`}
            </Text>
            <Slider
              min={1}
              max={99}
              value={share}
              onChange={setShare}
              thumbLabel="Percent to the other version"
              label={null}
            />
          </div>
        </>
      )}
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
