import { Text } from "@mantine/core";
import { ShownOnce } from "../shared/ShownOnce";

/** A signing secret, this once. */
export function SecretView({ secret, onClose }: { secret: string; onClose: () => void }) {
  return (
    <ShownOnce
      secret={secret}
      warning="Copy it now. It is not shown again."
      copy="Copy the secret"
      onClose={onClose}
    >
      <Text size="sm" c="dimmed">
        Your program checks the header webhook-signature with it, as libraries for Standard Webhooks
        do.
      </Text>
    </ShownOnce>
  );
}
