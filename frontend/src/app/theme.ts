import {
  Badge,
  type CSSVariablesResolver,
  createTheme,
  type MantineColorsTuple,
  Modal,
  Notification,
  TableScrollContainer,
} from "@mantine/core";

const veneer: MantineColorsTuple = [
  "#e8f8f5",
  "#d2efe9",
  "#9edfd2",
  "#68cfbb",
  "#3fbfa8",
  "#24b097",
  "#149d86",
  "#0b8577",
  "#0a6e64",
  "#075a52",
];

export const theme = createTheme({
  primaryColor: "veneer",
  primaryShade: { light: 8, dark: 7 },
  autoContrast: true,
  respectReducedMotion: true,
  defaultRadius: "md",
  cursorType: "pointer",
  colors: { veneer },
  fontFamily:
    'Inter, "Segoe UI", system-ui, -apple-system, "Helvetica Neue", Arial, "DejaVu Sans", sans-serif',
  fontFamilyMonospace:
    'ui-monospace, "SF Mono", "Cascadia Code", Menlo, Consolas, "DejaVu Sans Mono", monospace',
  components: {
    Badge: Badge.extend({ styles: { label: { overflow: "visible" } } }),
    Modal: Modal.extend({
      defaultProps: { closeButtonProps: { "aria-label": "Close" } },
      styles: { title: { fontWeight: 650 } },
    }),
    Notification: Notification.extend({
      defaultProps: { closeButtonProps: { "aria-label": "Close" } },
    }),
    TableScrollContainer: TableScrollContainer.extend({
      defaultProps: { type: "native", tabIndex: 0 },
    }),
  },
  headings: {
    fontWeight: "650",
    sizes: { h1: { fontSize: "1.6rem", lineHeight: "1.25" }, h2: { fontSize: "1.15rem" } },
  },
});

/** Mantine's own greys, reds and oranges for text miss WCAG AA on a light ground. */
export const cssVariables: CSSVariablesResolver = () => ({
  variables: {},
  light: {
    "--mantine-color-dimmed": "var(--mantine-color-gray-7)",
    "--mantine-color-placeholder": "var(--mantine-color-gray-7)",
    "--mantine-color-error": "var(--mantine-color-red-9)",
    "--mantine-color-orange-light-color": "#b0390a",
    "--veneer-canvas": "#f7f9f9",
    "--veneer-track": "var(--mantine-color-gray-2)",
  },
  dark: {
    "--mantine-color-dimmed": "#a9adb3",
    "--mantine-color-placeholder": "#a9adb3",
    "--mantine-color-error": "var(--mantine-color-red-4)",
    "--mantine-color-red-light": "rgba(250, 82, 82, 0.18)",
    "--veneer-canvas": "#17191b",
    "--veneer-track": "var(--mantine-color-dark-5)",
  },
});
