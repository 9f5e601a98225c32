import { Box, Center, Loader } from "@mantine/core";
import { lazy, Suspense } from "react";
import { useSession } from "../session/queries";
import { useLastSession } from "../session/useLastSession";
import { ErrorState } from "../shared/ErrorState";

const SignInPage = lazy(() => import("../session/SignInPage"));
const Doorways = lazy(() => import("./Doorways"));
const SignedIn = lazy(() => import("./SignedIn"));

/** Where links in mails and a company's sign-in lead, for people inside and outside. */
const DOORWAYS = ["/join", "/reset", "/sign-in/company"];

/** Signed out: the sign-in page, whatever the address; the address stays and is shown after signing in. */
export function App() {
  const session = useSession();
  const last = useLastSession(session.data);
  if (session.isPending) return <Wait />;
  if (session.isError) {
    return (
      <Box component="main" p="xl" maw="40rem" mx="auto">
        <ErrorState
          error={session.error}
          what="Veneer could not be opened"
          onRetry={() => session.refetch()}
        />
      </Box>
    );
  }
  const isDoorway = DOORWAYS.includes(location.pathname);
  return (
    <Suspense fallback={<Wait />}>
      {isDoorway && <Doorways session={session.data} />}
      {!isDoorway && !last && <SignInPage />}
      {!isDoorway && last && <SignedIn session={session.data} last={last} />}
    </Suspense>
  );
}

function Wait() {
  return (
    <Center component="main" mih="100dvh">
      <Loader role="status" aria-label="Loading" />
    </Center>
  );
}
