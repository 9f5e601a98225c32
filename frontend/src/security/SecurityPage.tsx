import { Stack } from "@mantine/core";
import { PageHeader } from "../shared/PageHeader";
import { PasswordSection } from "./PasswordSection";
import { SecondFactorSection } from "./SecondFactorSection";
import { SessionsSection } from "./SessionsSection";

export function Component() {
  return (
    <>
      <PageHeader title="Security">What guards your account, and where it is open.</PageHeader>
      <Stack gap="lg">
        <PasswordSection />
        <SecondFactorSection />
        <SessionsSection />
      </Stack>
    </>
  );
}
