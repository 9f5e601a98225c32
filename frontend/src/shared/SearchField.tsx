import { TextInput } from "@mantine/core";
import { useDebouncedCallback } from "@mantine/hooks";
import { IconSearch } from "@tabler/icons-react";
import { useEffect, useRef, useState } from "react";

interface Props {
  label: string;
  value: string;
  onSearch: (text: string) => void;
}

const PAUSE_MS = 250;

/** Asks once the typing pauses, not at every letter. */
export function SearchField({ label, value, onSearch }: Props) {
  const [text, setText] = useState(value);
  const told = useRef(value);
  const tell = useDebouncedCallback((next: string) => {
    told.current = next;
    onSearch(next);
  }, PAUSE_MS);
  useEffect(() => {
    // The address changed by other means than this field.
    if (value !== told.current) setText(value);
    told.current = value;
  }, [value]);
  return (
    <TextInput
      type="search"
      aria-label={label}
      placeholder={label}
      leftSection={<IconSearch size={16} aria-hidden />}
      value={text}
      onChange={(event) => {
        setText(event.currentTarget.value);
        tell(event.currentTarget.value.trim());
      }}
      w={{ base: "100%", xs: 240 }}
    />
  );
}
