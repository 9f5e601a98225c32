import { Group, Text } from "@mantine/core";
import { formatExactShare, formatShare } from "../shared/numbers";
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
  return chance > 0 && chance < 0.001 ? `<${formatExactShare(0.001)}` : formatExactShare(chance);
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

function Legend() {
  const [third, ninth, next, last] = [1, 2, 3, 4].map((level) => formatShare(3 ** -level));
  const scale = [
    `over ${third}`,
    `${ninth} to ${third}`,
    `${next} to ${ninth}`,
    `${last} to ${next}`,
    `under ${last}`,
  ];
  return (
    <Group gap={6} aria-label="Probability of a token" role="group">
      {scale.map((text, level) => (
        <Text key={text} span size="xs" px={4} className={classes.token} data-heat={level}>
          {text}
        </Text>
      ))}
    </Group>
  );
}
