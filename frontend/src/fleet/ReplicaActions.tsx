import { Button, Group } from "@mantine/core";
import type { Replica } from "../api/types";
import { confirmDanger, tell } from "../shared/confirm";
import { plural } from "../shared/numbers";
import { sumOf } from "./LoadFigures";
import { type Deed, useReplicaDeed } from "./queries";

const DONE: Record<Deed, string> = {
  drain: "It takes no new requests.",
  resume: "It takes requests again.",
  restart: "It was asked to end; its supervisor starts it again.",
};

export function ReplicaActions({ replica }: { replica: Replica }) {
  const deed = useReplicaDeed(replica.name);
  const act = (what: Deed) => tell(deed.mutateAsync(what), DONE[what], "Nothing was changed");
  const running = plural(sumOf(replica.load?.running ?? {}), "sequence");
  const waiting = plural(sumOf(replica.load?.waiting ?? {}), "sequence");
  const drain = () =>
    confirmDanger({
      title: "Drain this engine?",
      text: `New requests get 503 from now on, with word to try again. ${running} running and ${waiting} waiting go on to their end. Nothing is lost; Resume takes requests again.`,
      confirm: "Drain",
      onConfirm: () => act("drain"),
    });
  const restart = () =>
    confirmDanger({
      title: "Restart this engine?",
      text: `${running} running get a few seconds to end; those that do not are cut off and billed for what they got. ${waiting} waiting are sent away unbilled. Requests get 503 until the model is loaded again. Drain it first to lose nothing.`,
      confirm: "Restart",
      onConfirm: () => act("restart"),
    });
  return (
    <Group gap="xs">
      {replica.state === "serving" && (
        <Button variant="default" size="xs" onClick={drain} loading={deed.isPending}>
          Drain
        </Button>
      )}
      {replica.state === "draining" && (
        <Button size="xs" onClick={() => act("resume")} loading={deed.isPending}>
          Resume
        </Button>
      )}
      {replica.can_restart && (
        <Button variant="default" size="xs" onClick={restart} loading={deed.isPending}>
          Restart
        </Button>
      )}
    </Group>
  );
}
