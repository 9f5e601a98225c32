import react from "@vitejs/plugin-react";
import { defineConfig } from "vitest/config";

const BACKEND = "http://127.0.0.1:8000";

export default defineConfig({
  plugins: [react()],
  build: {
    outDir: "dist",
    assetsDir: "assets",
    // The charts are one lazy chunk of 560 kB that only pages with charts load.
    chunkSizeWarningLimit: 600,
    rolldownOptions: {
      output: {
        codeSplitting: {
          // Else what the charts share with every page goes with them, and every page loads the charts.
          includeDependenciesRecursively: false,
          groups: [
            {
              name: "charts",
              test: /node_modules[\\/](recharts|d3-|victory-vendor|@mantine[\\/]charts)/,
            },
            {
              name: "vendor",
              test: /node_modules[\\/](react|react-dom|react-router|scheduler|@tanstack)[\\/]/,
            },
          ],
        },
      },
    },
  },
  server: {
    proxy: {
      "/api": BACKEND,
      "/v1": BACKEND,
      "/ws": { target: BACKEND, ws: true },
    },
  },
  test: {
    environment: "jsdom",
    setupFiles: ["src/test/setup.ts"],
    restoreMocks: true,
    testTimeout: 30_000,
  },
});
