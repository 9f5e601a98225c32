import {
  Accordion,
  Card,
  NumberInput,
  SegmentedControl,
  Slider,
  Stack,
  Switch,
  TagsInput,
  Text,
  Textarea,
} from "@mantine/core";
import { formatTenths } from "../shared/numbers";
import { FormField } from "./FormField";
import type { Mode, Settings } from "./settings";

interface Props {
  settings: Settings;
  onChange: (changes: Partial<Settings>) => void;
  contextLength: number | undefined;
}

const MODES = [
  { value: "chat", label: "Chat" },
  { value: "completion", label: "Completion" },
];

export function SettingsPanel({ settings, onChange, contextLength }: Props) {
  return (
    <Card withBorder component="section" aria-label="Settings">
      <Stack>
        <SegmentedControl
          aria-label="Kind of request"
          data={MODES}
          value={settings.mode}
          onChange={(mode) => onChange({ mode: mode as Mode })}
        />
        {settings.mode === "chat" && (
          <Textarea
            label="System prompt"
            placeholder="None: the model's own template decides"
            autosize
            minRows={2}
            maxRows={8}
            value={settings.system}
            onChange={(event) => onChange({ system: event.currentTarget.value })}
          />
        )}
        <Temperature settings={settings} onChange={onChange} />
        <Amount
          label="Max tokens"
          value={settings.maxTokens}
          min={1}
          max={contextLength}
          onChange={(maxTokens) => onChange({ maxTokens })}
        />
        <FormField settings={settings} onChange={onChange} />
        <Switch
          label="Show token probabilities"
          checked={settings.logprobs}
          onChange={(event) => onChange({ logprobs: event.currentTarget.checked })}
        />
        <MoreSampling settings={settings} onChange={onChange} />
      </Stack>
    </Card>
  );
}

type PartProps = Omit<Props, "contextLength">;

function Temperature({ settings, onChange }: PartProps) {
  return (
    <div>
      <Text size="sm" fw={500} id="temperature-label">
        {`Temperature: ${formatTenths(settings.temperature)}`}
      </Text>
      <Slider
        min={0}
        max={2}
        step={0.1}
        label={null}
        value={settings.temperature}
        onChange={(temperature) => onChange({ temperature })}
        thumbProps={{ "aria-labelledby": "temperature-label" }}
      />
      <Text size="xs" c="dimmed" mt={6}>
        0 always takes the likeliest token
      </Text>
    </div>
  );
}

function MoreSampling({ settings, onChange }: PartProps) {
  return (
    <Accordion variant="contained">
      <Accordion.Item value="more">
        <Accordion.Control>More sampling</Accordion.Control>
        <Accordion.Panel>
          <Stack gap="sm">
            <Amount
              label="Top p"
              description="Only the likeliest tokens that together have this probability; 1 is off"
              value={settings.topP}
              min={0.01}
              max={1}
              step={0.05}
              onChange={(topP) => onChange({ topP })}
            />
            <Amount
              label="Top k"
              description="Only so many of the likeliest tokens; 0 is off"
              value={settings.topK}
              min={0}
              max={1_000_000}
              onChange={(topK) => onChange({ topK })}
            />
            <Amount
              label="Min p"
              description="Only tokens at least so likely, as a share of the likeliest; 0 is off"
              value={settings.minP}
              min={0}
              max={1}
              step={0.05}
              onChange={(minP) => onChange({ minP })}
            />
            <Penalties settings={settings} onChange={onChange} />
            <NumberInput
              label="Seed"
              description="The same seed gives the same text"
              placeholder="None"
              allowDecimal={false}
              value={settings.seed ?? ""}
              onChange={(value) => onChange({ seed: typeof value === "number" ? value : null })}
            />
            <TagsInput
              label="Stop texts"
              description="The answer ends before the first of them"
              maxTags={16}
              acceptValueOnBlur
              value={settings.stop}
              onChange={(stop) => onChange({ stop })}
            />
          </Stack>
        </Accordion.Panel>
      </Accordion.Item>
    </Accordion>
  );
}

function Penalties({ settings, onChange }: PartProps) {
  return (
    <>
      <Amount
        label="Presence penalty"
        value={settings.presencePenalty}
        min={-2}
        max={2}
        step={0.1}
        onChange={(presencePenalty) => onChange({ presencePenalty })}
      />
      <Amount
        label="Frequency penalty"
        value={settings.frequencyPenalty}
        min={-2}
        max={2}
        step={0.1}
        onChange={(frequencyPenalty) => onChange({ frequencyPenalty })}
      />
      <Amount
        label="Repetition penalty"
        description="1 is off"
        value={settings.repetitionPenalty}
        min={0.1}
        max={10}
        step={0.1}
        onChange={(repetitionPenalty) => onChange({ repetitionPenalty })}
      />
    </>
  );
}

interface AmountProps {
  label: string;
  description?: string;
  value: number;
  min: number;
  max: number | undefined;
  step?: number;
  onChange: (value: number) => void;
}

function Amount({ label, description, value, min, max, step = 1, onChange }: AmountProps) {
  return (
    <NumberInput
      label={label}
      description={description}
      min={min}
      {...(max === undefined ? {} : { max })}
      step={step}
      allowDecimal={step < 1}
      clampBehavior="blur"
      value={value}
      onChange={(next) => {
        if (typeof next === "number" && next >= min && (max === undefined || next <= max)) {
          onChange(next);
        }
      }}
    />
  );
}
