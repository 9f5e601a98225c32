import { Alert, Anchor, Button, Center, Loader, PasswordInput, Stack, Text } from "@mantine/core";
import { useForm } from "@mantine/form";
import { messageOf } from "../api/errors";
import type { InvitationToYou, Session } from "../api/types";
import { Doorway } from "../session/Doorway";
import { SignInForm } from "../session/SignInForm";
import { useInvitation, useJoin } from "./queries";

interface Props {
  token: string;
  session: Session | null;
}

/** Where an invitation's link leads, for people inside and outside. */
export function JoinPage({ token, session }: Props) {
  const invitation = useInvitation(token);
  if (invitation.isPending) {
    return (
      <Center component="main" mih="100dvh">
        <Loader role="status" aria-label="Loading" />
      </Center>
    );
  }
  if (invitation.isError) {
    return (
      <Doorway name="Join" title="This link opens nothing" text={messageOf(invitation.error)}>
        <Center>
          <Anchor href="/">Go to the console</Anchor>
        </Center>
      </Doorway>
    );
  }
  const { tenant_name, role, email } = invitation.data;
  return (
    <Doorway name="Join" title={`Join ${tenant_name}`} text={`As ${role}, with ${email}.`}>
      <JoinForm token={token} invitation={invitation.data} session={session} />
    </Doorway>
  );
}

function JoinForm({ token, invitation, session }: Props & { invitation: InvitationToYou }) {
  const join = useJoin();
  const form = useForm({ initialValues: { password: "" } });
  const isOwn = session?.user.email === invitation.email;
  if (invitation.has_account && !session) {
    return (
      <Stack>
        <Text size="sm">You have an account already: sign in, then accept.</Text>
        <SignInForm email={invitation.email} />
      </Stack>
    );
  }
  if (session && !isOwn) {
    return (
      <Alert color="yellow" title="You are signed in as somebody else">
        {`The invitation is for ${invitation.email}, and you are ${session.user.email}. Sign out, then open the link again.`}
      </Alert>
    );
  }
  return (
    <form
      onSubmit={form.onSubmit(({ password }) =>
        join.mutate(isOwn ? { token } : { token, password }),
      )}
    >
      <Stack>
        {join.isError && (
          <Alert color="red" role="alert">
            {messageOf(join.error)}
          </Alert>
        )}
        {!isOwn && (
          <>
            <input type="hidden" autoComplete="username" value={invitation.email} readOnly />
            <PasswordInput
              label="Choose a password"
              autoComplete="new-password"
              autoFocus
              required
              {...form.getInputProps("password")}
            />
          </>
        )}
        <Button type="submit" fullWidth loading={join.isPending}>
          Accept
        </Button>
      </Stack>
    </form>
  );
}
