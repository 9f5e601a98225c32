import { Box, Center, Loader } from "@mantine/core";
import { RouterProvider } from "react-router";
import { JoinPage } from "../join/JoinPage";
import { CompanyReturnPage } from "../session/CompanyReturnPage";
import { useSession } from "../session/queries";
import { ResetPage } from "../session/ResetPage";
import { SignInPage } from "../session/SignInPage";
import { WorkspaceProvider } from "../session/WorkspaceProvider";
import { ErrorState } from "../shared/ErrorState";
import { router } from "./router";

/** Whoever was signed in has connected their account; all others are in now. */
const toSecurity = () => location.replace("/security");
const toStart = () => location.replace("/");

/** Signed out: the sign-in page, whatever the address; the address stays and is shown after signing in. */
export function App() {
  const session = useSession();
  if (session.isPending) {
    return (
      <Center component="main" mih="100dvh">
        <Loader aria-label="Loading" />
      </Center>
    );
  }
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
  if (location.pathname === "/join") {
    return <JoinPage token={location.hash.slice(1)} session={session.data} />;
  }
  if (location.pathname === "/reset") return <ResetPage token={location.hash.slice(1)} />;
  if (location.pathname === "/sign-in/company") {
    return (
      <CompanyReturnPage query={location.search} onDone={session.data ? toSecurity : toStart} />
    );
  }
  if (!session.data) return <SignInPage />;
  return (
    <WorkspaceProvider session={session.data}>
      <RouterProvider router={router} />
    </WorkspaceProvider>
  );
}
