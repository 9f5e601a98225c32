import type { Session } from "../api/types";
import { JoinPage } from "../join/JoinPage";
import { CompanyReturnPage } from "../session/CompanyReturnPage";
import { ResetPage } from "../session/ResetPage";

/** Whoever was signed in has connected their account; all others are in now. */
const toSecurity = () => location.replace("/security");
const toStart = () => location.replace("/");

export default function Doorways({ session }: { session: Session | null }) {
  const token = location.hash.slice(1);
  if (location.pathname === "/join") return <JoinPage token={token} session={session} />;
  if (location.pathname === "/reset") return <ResetPage token={token} />;
  return <CompanyReturnPage query={location.search} onDone={session ? toSecurity : toStart} />;
}
