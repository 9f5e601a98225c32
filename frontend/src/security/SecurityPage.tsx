import { Alert, Stack } from "@mantine/core";
import { useWorkspace } from "../session/context";
import { PageHeader } from "../shared/PageHeader";
import { CompaniesSection } from "./CompaniesSection";
import { PasswordSection } from "./PasswordSection";
import { SecondFactorSection } from "./SecondFactorSection";
import { SessionsSection } from "./SessionsSection";

export function Component() {
  const { session } = useWorkspace();
  return (
    <>
      <PageHeader title="Security">What guards your account, and where it is open.</PageHeader>
      <Stack gap="lg">
        {session.through_company ? (
          <Alert color="gray">
            You came in through your company, which guards that. To see or change the account
            itself, sign in with its password.
          </Alert>
        ) : (
          <>
            <PasswordSection />
            <SecondFactorSection />
            <CompaniesSection />
          </>
        )}
        <SessionsSection />
      </Stack>
    </>
  );
}
