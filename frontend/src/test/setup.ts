import { afterEach, vi } from "vitest";

/** What Mantine and the charts ask of a browser and jsdom does not have. */
class NoObserver {
  observe() {}
  unobserve() {}
  disconnect() {}
}

if (typeof document !== "undefined") {
  const { cleanup, configure } = await import("@testing-library/react");
  afterEach(cleanup);
  // Above a busy machine's slowest render; a test that passes does not wait for it.
  configure({ asyncUtilTimeout: 10_000 });
  Element.prototype.scrollIntoView = () => undefined;
  Object.defineProperty(document, "fonts", { value: new EventTarget() });
}

vi.stubGlobal("ResizeObserver", NoObserver);
vi.stubGlobal("IntersectionObserver", NoObserver);
vi.stubGlobal("matchMedia", (query: string) => ({
  matches: false,
  media: query,
  addEventListener() {},
  removeEventListener() {},
  addListener() {},
  removeListener() {},
}));
