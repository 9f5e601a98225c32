import { Alert, Button, CopyButton, Grid, Group } from "@mantine/core";
import { IconColumnInsertRight, IconEraser, IconLink } from "@tabler/icons-react";
import { useTenant } from "../session/context";
import { PageHeader } from "../shared/PageHeader";
import { Composer } from "./Composer";
import { Lanes } from "./Lanes";
import { type Shared, toHash } from "./permalink";
import { SettingsPanel } from "./SettingsPanel";
import { settingsProblem } from "./settings";
import { usePlayground } from "./usePlayground";

export function Component() {
  const { session } = useTenant();
  const page = usePlayground();
  const { columns, settings } = page;
  const last = columns[0]?.lane.turns.at(-1)?.prompt ?? "";
  return (
    <>
      <PageHeader
        title="Playground"
        action={<Actions page={page} shared={{ ...page.state, prompt: page.prompt || last }} />}
      >
        Ask up to four models the same, and see what each answer takes. Requests here are billed
        like any other.
      </PageHeader>
      {page.isForeign && <OfAnotherTenant shared={page.opened} />}
      <Grid gap="md">
        <Grid.Col span={{ base: 12, md: 3.5 }}>
          <SettingsPanel
            settings={settings}
            onChange={page.changeSettings}
            contextLength={session.base_model.context_len ?? undefined}
          />
        </Grid.Col>
        <Grid.Col span={{ base: 12, md: 8.5 }}>
          <Lanes
            columns={columns}
            groups={page.groups}
            doorUrl={session.door_url}
            onModel={page.setModel}
            onRemove={page.removeColumn}
          />
          <Composer
            text={page.prompt}
            onText={page.setPrompt}
            placeholder={
              settings.mode === "chat"
                ? "Ask something (Enter sends)"
                : "Begin a text for the model to go on with (Enter sends)"
            }
            running={columns.some(({ lane }) => lane.running)}
            problem={settingsProblem(settings)}
            onSend={(prompt) => {
              for (const { model, lane } of columns) lane.send(model, prompt, settings);
            }}
            onStop={() => {
              for (const { lane } of columns) lane.stop();
            }}
          />
        </Grid.Col>
      </Grid>
    </>
  );
}

function Actions({ page, shared }: { page: ReturnType<typeof usePlayground>; shared: Shared }) {
  const link = `${location.origin}/playground${toHash(shared)}`;
  return (
    <Group gap="xs">
      <Button
        variant="default"
        leftSection={<IconColumnInsertRight size={16} aria-hidden />}
        onClick={page.addColumn}
        disabled={!page.canAdd}
      >
        Add a column
      </Button>
      <CopyButton value={link}>
        {({ copied, copy }) => (
          <Button variant="default" leftSection={<IconLink size={16} aria-hidden />} onClick={copy}>
            {copied ? "Copied" : "Copy link"}
          </Button>
        )}
      </CopyButton>
      <Button
        variant="default"
        leftSection={<IconEraser size={16} aria-hidden />}
        onClick={page.reset}
        disabled={page.columns.every(({ lane }) => lane.turns.length === 0)}
      >
        New conversation
      </Button>
    </Group>
  );
}

/** Links stay within a tenant: its models are nobody else's. */
function OfAnotherTenant({ shared }: { shared: Shared | null }) {
  const { session, selectTenant } = useTenant();
  const other = session.memberships.find(({ tenant }) => tenant.id === shared?.tenant);
  return (
    <Alert color="yellow" mb="md" title="This link is of another tenant">
      <Group justify="space-between">
        {other
          ? `Its models are those of ${other.tenant.name}.`
          : "You are no member of it, so that its adapters are not yours to call."}
        {other && (
          <Button size="xs" variant="default" onClick={() => selectTenant(other.tenant.id)}>
            {`Switch to ${other.tenant.name}`}
          </Button>
        )}
      </Group>
    </Alert>
  );
}
