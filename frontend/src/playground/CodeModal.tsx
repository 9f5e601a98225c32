import { Modal } from "@mantine/core";
import { CodeTabs } from "../shared/CodeTabs";
import { callExamples } from "../shared/callExamples";
import type { Turn } from "./answer";

interface Props {
  turn: Turn;
  doorUrl: string;
  opened: boolean;
  onClose: () => void;
}

/** The very request that was sent, as programs write it. */
export function CodeModal({ turn, doorUrl, opened, onClose }: Props) {
  return (
    <Modal opened={opened} onClose={onClose} title="This request as code" size="xl">
      <CodeTabs examples={callExamples(doorUrl, turn.path, turn.body)} />
    </Modal>
  );
}
