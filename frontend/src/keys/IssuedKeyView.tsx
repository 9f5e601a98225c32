import type { IssuedKey } from "../api/types";
import { ShownOnce } from "../shared/ShownOnce";

export function IssuedKeyView({ issued, onClose }: { issued: IssuedKey; onClose: () => void }) {
  return (
    <ShownOnce
      secret={issued.key}
      warning="Copy it now. Veneer keeps only a hash and can never show it again."
      copy="Copy the key"
      onClose={onClose}
    />
  );
}
