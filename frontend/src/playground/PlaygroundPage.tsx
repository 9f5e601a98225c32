import { Button, Grid } from "@mantine/core";
import { IconEraser } from "@tabler/icons-react";
import { useState } from "react";
import { useAdapters } from "../adapters/queries";
import { useTenant } from "../session/context";
import { PageHeader } from "../shared/PageHeader";
import { Composer } from "./Composer";
import { Lanes } from "./Lanes";
import { modelGroups } from "./models";
import { SettingsPanel } from "./SettingsPanel";
import { type Settings, useLane } from "./useLane";

const FIRST_SETTINGS: Settings = { system: "", temperature: 0, maxTokens: 256 };

export function Component() {
  const { session } = useTenant();
  const base = session.base_model.name;
  const adapters = useAdapters();
  const groups = modelGroups(adapters.data ?? [], base);
  const [chosen, setChosen] = useState<string | null>(null);
  const model = chosen ?? groups[0]?.items[0] ?? base;
  const [wantsCompare, setCompare] = useState(true);
  const compare = wantsCompare && model !== base;
  const [settings, setSettings] = useState(FIRST_SETTINGS);
  const main = useLane();
  const reference = useLane();
  const lanes = compare
    ? [
        { model, lane: main },
        { model: base, lane: reference },
      ]
    : [{ model, lane: main }];
  const reset = () => {
    main.reset();
    reference.reset();
  };
  const clear = (
    <Button
      variant="default"
      leftSection={<IconEraser size={16} aria-hidden />}
      onClick={reset}
      disabled={main.turns.length === 0}
    >
      New conversation
    </Button>
  );
  return (
    <>
      <PageHeader title="Playground" action={clear}>
        Talk to an adapter and see what each answer takes. Requests here are billed like any other.
      </PageHeader>
      <Grid gap="md">
        <Grid.Col span={{ base: 12, md: 3.5 }}>
          <SettingsPanel
            groups={groups}
            loading={adapters.isPending}
            model={model}
            onModel={(next) => {
              setChosen(next);
              reset();
            }}
            canCompare={model !== base}
            compare={compare}
            onCompare={(next) => {
              setCompare(next);
              reset();
            }}
            settings={settings}
            onSettings={setSettings}
            contextLength={session.base_model.context_len ?? undefined}
          />
        </Grid.Col>
        <Grid.Col span={{ base: 12, md: 8.5 }}>
          <Lanes lanes={lanes} />
          <Composer
            running={lanes.some(({ lane }) => lane.running)}
            onSend={(prompt) => {
              for (const { model: name, lane } of lanes) lane.send(name, prompt, settings);
            }}
            onStop={() => {
              for (const { lane } of lanes) lane.stop();
            }}
          />
        </Grid.Col>
      </Grid>
    </>
  );
}
