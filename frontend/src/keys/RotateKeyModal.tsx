import { Modal, Select, Text } from "@mantine/core";
import { useState } from "react";
import type { ApiKey } from "../api/types";
import { FormModal } from "../shared/FormModal";
import { IssuedKeyView } from "./IssuedKeyView";
import { useRotateKey } from "./queries";

const GRACES = [
  { value: "0", label: "Not at all" },
  { value: "3600", label: "For an hour" },
  { value: "86400", label: "For a day" },
  { value: "604800", label: "For 7 days" },
  { value: "2592000", label: "For 30 days" },
];

interface Props {
  apiKey: ApiKey;
  opened: boolean;
  onClose: () => void;
}

/** First how long the old text goes on working; then the new one, once. */
export function RotateKeyModal({ apiKey, opened, onClose }: Props) {
  const rotate = useRotateKey();
  const [grace, setGrace] = useState("86400");
  const close = () => {
    onClose();
    rotate.reset();
  };
  if (rotate.data) {
    return (
      <Modal
        opened={opened}
        onClose={close}
        title={`The new text of ${apiKey.name}`}
        closeOnClickOutside={false}
        closeOnEscape={false}
      >
        <IssuedKeyView issued={rotate.data} onClose={close} />
      </Modal>
    );
  }
  return (
    <FormModal
      title={`Rotate ${apiKey.name}`}
      opened={opened}
      onClose={close}
      onSubmit={(event) => {
        event.preventDefault();
        rotate.mutate({ id: apiKey.id, grace_seconds: Number(grace) });
      }}
      submit="Rotate the key"
      pending={rotate.isPending}
      error={rotate.error}
    >
      <Text size="sm">
        The key gets a new text and keeps its name, limits and usage. Give the new text to your
        programs while the old one still works.
      </Text>
      <Select
        label="The old text goes on working"
        data={GRACES}
        value={grace}
        onChange={(value) => setGrace(value ?? "86400")}
        allowDeselect={false}
      />
    </FormModal>
  );
}
