import { Doorway } from "./Doorway";
import { SignInForm } from "./SignInForm";

export default function SignInPage() {
  return (
    <Doorway
      name="Sign in"
      title="Sign in to Veneer"
      text="Upload adapters, issue keys, read what a token costs."
    >
      <SignInForm company={new URLSearchParams(location.search).get("tenant") ?? ""} />
    </Doorway>
  );
}
