import { Button, Modal, Select, Stack, Text } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { IconPlus } from "@tabler/icons-react";
import { useState } from "react";
import { useAdapters } from "../adapters/queries";
import { useMembers } from "../members/queries";
import { LimitsModal } from "./LimitsModal";
import { type Settled, useAllKeys, type Whose } from "./queries";

interface Props {
  /** The kinds of levels that whoever looks may limit. */
  kinds: Settled[];
}

const KINDS = { member: "A member", key: "An API key", adapter: "An adapter" };

/** First whose, then how much. */
export function AddLimits({ kinds }: Props) {
  const [opened, { open, close }] = useDisclosure(false);
  const [whose, setWhose] = useState<Whose | null>(null);
  const choose = (chosen: Whose) => {
    close();
    setWhose(chosen);
  };
  return (
    <>
      <Button leftSection={<IconPlus size={16} aria-hidden />} onClick={open}>
        Set limits
      </Button>
      <Modal opened={opened} onClose={close} title="Whose limits?">
        <ChooseWhose kinds={kinds} onChoose={choose} />
      </Modal>
      {whose && <LimitsModal whose={whose} onClose={() => setWhose(null)} />}
    </>
  );
}

function ChooseWhose({ kinds, onChoose }: { kinds: Settled[]; onChoose: (whose: Whose) => void }) {
  const [kind, setKind] = useState<Settled>(kinds[0] ?? "key");
  return (
    <Stack>
      <Select
        label="Limit"
        data={kinds.map((value) => ({ value, label: KINDS[value] }))}
        value={kind}
        onChange={(value) => setKind(value as Settled)}
        allowDeselect={false}
      />
      {kind === "member" && <Members onChoose={onChoose} />}
      {kind === "key" && <Keys onChoose={onChoose} />}
      {kind === "adapter" && <Adapters onChoose={onChoose} />}
    </Stack>
  );
}

type Choose = { onChoose: (whose: Whose) => void };

function Members({ onChoose }: Choose) {
  const members = useMembers();
  const named = members.data?.map(({ id, email }) => ({ value: id, label: email }));
  return <Subjects level="member" named={named} failed={members.isError} onChoose={onChoose} />;
}

function Keys({ onChoose }: Choose) {
  const keys = useAllKeys();
  const live = keys.data?.filter(({ revoked_at }) => !revoked_at);
  const named = live?.map(({ id, name, prefix }) => ({ value: id, label: `${name} (${prefix})` }));
  return <Subjects level="key" named={named} failed={keys.isError} onChoose={onChoose} />;
}

function Adapters({ onChoose }: Choose) {
  const adapters = useAdapters();
  const named = adapters.data?.map(({ id, name }) => ({ value: id, label: name }));
  return <Subjects level="adapter" named={named} failed={adapters.isError} onChoose={onChoose} />;
}

interface SubjectsProps extends Choose {
  level: Settled;
  named: { value: string; label: string }[] | undefined;
  failed: boolean;
}

function Subjects({ level, named, failed, onChoose }: SubjectsProps) {
  if (failed) return <Text c="red">The list could not be read: close this and try again.</Text>;
  if (named?.length === 0) return <Text c="dimmed">There is none yet.</Text>;
  return (
    <Select
      label="Which one"
      placeholder={named ? "Choose" : "Loading"}
      disabled={!named}
      data={named ?? []}
      searchable
      value={null}
      onChange={(id) => {
        const found = named?.find(({ value }) => value === id);
        if (found) onChoose({ level, id: found.value, label: found.label });
      }}
    />
  );
}
