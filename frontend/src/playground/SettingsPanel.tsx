import { Card, NumberInput, Select, Slider, Stack, Switch, Text, Textarea } from "@mantine/core";
import type { Settings } from "./useLane";

interface Props {
  groups: { group: string; items: string[] }[];
  loading: boolean;
  model: string;
  onModel: (model: string) => void;
  canCompare: boolean;
  compare: boolean;
  onCompare: (compare: boolean) => void;
  settings: Settings;
  onSettings: (settings: Settings) => void;
  contextLength: number | undefined;
}

export function SettingsPanel(props: Props) {
  const { settings, onSettings } = props;
  return (
    <Card withBorder component="section" aria-label="Settings">
      <Stack>
        <Select
          label="Model"
          data={props.groups}
          value={props.model}
          onChange={(model) => model && props.onModel(model)}
          allowDeselect={false}
          searchable
          disabled={props.loading}
        />
        <Switch
          label="Compare with the base model"
          checked={props.compare}
          disabled={!props.canCompare}
          onChange={(event) => props.onCompare(event.currentTarget.checked)}
        />
        <Textarea
          label="System prompt"
          placeholder="None: the model's own template decides"
          autosize
          minRows={2}
          maxRows={8}
          value={settings.system}
          onChange={(event) => onSettings({ ...settings, system: event.currentTarget.value })}
        />
        <div>
          <Text size="sm" fw={500} id="temperature-label">
            {`Temperature: ${settings.temperature.toFixed(1)}`}
          </Text>
          <Slider
            min={0}
            max={2}
            step={0.1}
            label={null}
            value={settings.temperature}
            onChange={(temperature) => onSettings({ ...settings, temperature })}
            thumbProps={{ "aria-labelledby": "temperature-label" }}
          />
          <Text size="xs" c="dimmed" mt={6}>
            0 always takes the likeliest token
          </Text>
        </div>
        <NumberInput
          label="Max tokens"
          min={1}
          max={props.contextLength}
          allowDecimal={false}
          clampBehavior="blur"
          value={settings.maxTokens}
          onChange={(value) => {
            if (typeof value === "number" && value >= 1)
              onSettings({ ...settings, maxTokens: value });
          }}
        />
      </Stack>
    </Card>
  );
}
