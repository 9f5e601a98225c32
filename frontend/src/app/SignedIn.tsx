import { useQueryClient } from "@tanstack/react-query";
import { lazy, Suspense, useEffect, useState } from "react";
import { RouterProvider } from "react-router";
import type { Session } from "../api/types";
import { SessionGate } from "../session/gate";
import { SESSION_KEY } from "../session/queries";
import { WorkspaceProvider } from "../session/WorkspaceProvider";
import { router } from "./router";

const SignInAgain = lazy(() => import("../session/SignInAgain"));

interface Props {
  /** null once it has ended. */
  session: Session | null;
  last: Session;
}

/** The pages. A session that ends takes nothing away: whoever comes back goes on where they were. */
export default function SignedIn({ session, last }: Props) {
  const queries = useQueryClient();
  const [gate] = useState(() => new SessionGate(() => queries.setQueryData(SESSION_KEY, null)));
  useEffect(() => {
    if (session) gate.open();
  }, [session, gate]);
  return (
    <WorkspaceProvider session={session ?? last} gate={gate}>
      <RouterProvider router={router} />
      <Suspense>{!session && <SignInAgain email={last.user.email} />}</Suspense>
    </WorkspaceProvider>
  );
}
