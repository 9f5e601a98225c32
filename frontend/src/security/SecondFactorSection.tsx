import { Badge, Button, Group, Stack, Text } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { useState } from "react";
import type { Factors } from "../api/types";
import { notifyDone } from "../shared/confirm";
import { ErrorState } from "../shared/ErrorState";
import { LoadingCards } from "../shared/LoadingCards";
import { useEndTotp, useFactors, useRenewRecoveryCodes } from "./factors";
import { PasskeyList } from "./PasskeyList";
import { PasswordPrompt } from "./PasswordPrompt";
import { RecoveryCodesModal } from "./RecoveryCodesModal";
import { Section } from "./Section";
import { TotpModal } from "./TotpModal";

export function SecondFactorSection() {
  const factors = useFactors();
  const [codes, setCodes] = useState<string[]>([]);
  return (
    <Section
      title="Two-factor sign-in"
      text="A stolen password alone then opens nothing. Turning a second factor on ends your other sessions."
    >
      {factors.isPending && <LoadingCards height={48} />}
      {factors.isError && (
        <ErrorState
          error={factors.error}
          what="Your second factors could not be read"
          onRetry={() => factors.refetch()}
        />
      )}
      {factors.data && <FactorList factors={factors.data} onCodes={setCodes} />}
      <RecoveryCodesModal codes={codes} onClose={() => setCodes([])} />
    </Section>
  );
}

interface Props {
  factors: Factors;
  /** Recovery codes that the server shows once. */
  onCodes: (codes: string[]) => void;
}

function FactorList({ factors, onCodes }: Props) {
  return (
    <Stack>
      <TotpRow factors={factors} onCodes={onCodes} />
      <PasskeyList factors={factors} onCodes={onCodes} />
      {(factors.totp || factors.passkeys.length > 0) && (
        <RecoveryRow factors={factors} onCodes={onCodes} />
      )}
    </Stack>
  );
}

function TotpRow({ factors, onCodes }: Props) {
  const [opened, { open, close }] = useDisclosure(false);
  const end = useEndTotp();
  return (
    <Group justify="space-between">
      <Group gap="xs">
        <Text fw={600}>Codes of an app</Text>
        <Badge variant="light" color={factors.totp ? "veneer" : "gray"} tt="none">
          {factors.totp ? "on" : "off"}
        </Badge>
      </Group>
      <Button variant="default" onClick={open}>
        {factors.totp ? "Turn off" : "Set up"}
      </Button>
      {factors.totp ? (
        <PasswordPrompt
          title="Turn the codes off"
          submit="Turn off"
          opened={opened}
          onClose={close}
          change={end}
          onDone={() => {
            close();
            notifyDone("Codes are off.");
          }}
        />
      ) : (
        <TotpModal opened={opened} onClose={close} onCodes={onCodes} />
      )}
    </Group>
  );
}

function RecoveryRow({ factors, onCodes }: Props) {
  const [opened, { open, close }] = useDisclosure(false);
  const renew = useRenewRecoveryCodes();
  return (
    <Group justify="space-between">
      <Group gap="xs">
        <Text fw={600}>Recovery codes</Text>
        <Badge variant="light" color={factors.recovery_codes_left > 2 ? "veneer" : "red"} tt="none">
          {`${factors.recovery_codes_left} left`}
        </Badge>
      </Group>
      <Button variant="default" onClick={open}>
        New codes
      </Button>
      <PasswordPrompt
        title="New recovery codes"
        text="Those that you have now are good no more."
        submit="Make new ones"
        opened={opened}
        onClose={close}
        change={renew}
        onDone={({ recovery_codes }) => {
          close();
          onCodes(recovery_codes);
        }}
      />
    </Group>
  );
}
