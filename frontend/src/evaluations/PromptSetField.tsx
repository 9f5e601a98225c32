import { Button, Group, Select } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { IconPlus } from "@tabler/icons-react";
import type { PromptSetRow } from "../api/types";
import { confirmDanger, notifyFailed } from "../shared/confirm";
import { plural } from "../shared/numbers";
import { PromptSetModal } from "./PromptSetModal";
import { useDeletePromptSet } from "./queries";

interface Props {
  adapterId: string;
  sets: PromptSetRow[];
  value: string;
  onChange: (id: string) => void;
}

/** Which prompts are asked; makes and deletes sets, too. */
export function PromptSetField({ adapterId, sets, value, onChange }: Props) {
  const [creating, create] = useDisclosure(false);
  const chosen = sets.find(({ id }) => id === value);
  return (
    <Group align="flex-end" gap="xs">
      <Select
        label="Prompt set"
        placeholder={sets.length === 0 ? "None yet: make one" : "Choose one"}
        data={sets.map(({ id, name, size }) => ({
          value: id,
          label: `${name} (${plural(size, "prompt")})`,
        }))}
        value={chosen?.id ?? null}
        onChange={(id) => id && onChange(id)}
        disabled={sets.length === 0}
        allowDeselect={false}
        w={320}
      />
      <Button
        variant="default"
        leftSection={<IconPlus size={16} aria-hidden />}
        onClick={create.open}
      >
        New prompt set
      </Button>
      {chosen && <DeleteSet set={chosen} onDeleted={() => onChange("")} />}
      {creating && (
        <PromptSetModal adapterId={adapterId} onCreated={onChange} onClose={create.close} />
      )}
    </Group>
  );
}

function DeleteSet({ set, onDeleted }: { set: PromptSetRow; onDeleted: () => void }) {
  const remove = useDeletePromptSet();
  const ask = () =>
    confirmDanger({
      title: "Delete the prompt set?",
      text: `No further evaluation can use ${set.name}. Those that did keep their prompts and answers.`,
      confirm: "Delete the set",
      onConfirm: () =>
        remove.mutate(set.id, {
          onSuccess: onDeleted,
          onError: (error) => notifyFailed("The prompt set was not deleted", error),
        }),
    });
  return (
    <Button variant="subtle" color="gray" onClick={ask} loading={remove.isPending}>
      {`Delete ${set.name}`}
    </Button>
  );
}
