import { afterEach, vi } from "vitest";

afterEach(async () => {
  const { cleanup } = await import("@testing-library/react");
  cleanup();
});

/** What Mantine and the charts ask of a browser and jsdom does not have. */
class NoObserver {
  observe() {}
  unobserve() {}
  disconnect() {}
}

vi.stubGlobal("ResizeObserver", NoObserver);
vi.stubGlobal("matchMedia", (query: string) => ({
  matches: false,
  media: query,
  addEventListener() {},
  removeEventListener() {},
  addListener() {},
  removeListener() {},
}));
