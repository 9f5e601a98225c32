import { Container, Modal, Stack, Text } from "@mantine/core";
import { SignInForm } from "./SignInForm";

const ABOVE_ALL = 1000;

/** Over the pages of a session that has ended: they stay as they are, and nobody sees them. */
export default function SignInAgain({ email }: { email: string }) {
  return (
    <Modal
      opened
      fullScreen
      zIndex={ABOVE_ALL}
      title="Sign in to Veneer"
      onClose={() => undefined}
      withCloseButton={false}
      closeOnEscape={false}
    >
      <Container size="25rem" px={0} pt="xl">
        <Stack>
          <Text size="sm" c="dimmed">
            Your session has ended. What you were at is still here when you are back.
          </Text>
          <SignInForm email={email} />
        </Stack>
      </Container>
    </Modal>
  );
}
