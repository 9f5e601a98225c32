import { Group, Text } from "@mantine/core";
import type { TokenChance } from "./chat";
import classes from "./Playground.module.css";

const LEVELS = 5;

/** 0: sure. Up to 4: hardly likely. Each level is a factor of about three. */
export function heatOf(chance: number | null): number {
  if (chance === null) return 0;
  const level = Math.floor(-Math.log(Math.max(chance, 1e-9)) / Math.log(3));
  return Math.min(Math.max(level, 0), LEVELS - 1);
}

function percent(chance: number): string {
  const value = 100 * chance;
  return value > 0 && value < 0.1 ? "<0.1 %" : `${value.toFixed(1)} %`;
}

function titleOf({ token, chance, likeliest }: TokenChance): string {
  const others = likeliest.filter((other) => other.token !== token).slice(0, 4);
  return [
    chance === null ? "unknown" : percent(chance),
    ...others.map((other) => `${JSON.stringify(other.token)} ${percent(other.chance)}`),
  ].join("\n");
}

/** The answer by its tokens, the less likely the warmer. Point at one for its probability and what else might have come. */
export function TokenHeat({ chances }: { chances: TokenChance[] }) {
  return (
    <>
      <Text size="sm" className={classes.text} data-testid="answer">
        {chances.map((each, index) => (
          <span
            // biome-ignore lint/suspicious/noArrayIndexKey: tokens are only ever added at the end
            key={index}
            className={classes.token}
            data-heat={heatOf(each.chance)}
            title={titleOf(each)}
          >
            {each.token}
          </span>
        ))}
      </Text>
      <Legend />
    </>
  );
}

const SCALE = ["over 33 %", "11 to 33 %", "4 to 11 %", "1 to 4 %", "under 1 %"];

function Legend() {
  return (
    <Group gap={6} aria-label="Probability of a token" role="group">
      {SCALE.map((text, level) => (
        <Text key={text} span size="xs" px={4} className={classes.token} data-heat={level}>
          {text}
        </Text>
      ))}
    </Group>
  );
}
