import react from "@vitejs/plugin-react";
import type { Plugin } from "vite";
import { defineConfig } from "vitest/config";

// Where the manager listens while one works on the page.
const manager = process.env.BERTH_URL ?? "http://127.0.0.1:8420";
const proxied = { target: manager, changeOrigin: false, ws: true };

/** KaTeX names each font in three formats. All browsers that run the page read the first one. */
const oneFontFormat: Plugin = {
  name: "one-font-format",
  enforce: "pre",
  transform: (css, id) =>
    /katex[^?]*\.css/.test(id) ? css.replace(/,\s*url\([^)]*\.(?:woff|ttf)\)\s*format\("[a-z]+"\)/g, "") : null,
};

export default defineConfig({
  plugins: [react(), oneFontFormat],
  build: {
    target: "es2023",
    // The content policy allows no data: but images, and no inline script.
    assetsInlineLimit: 0,
    chunkSizeWarningLimit: 600,
  },
  server: {
    host: "127.0.0.1",
    proxy: {
      "/graphql": proxied,
      "/auth": proxied,
      "/storage": proxied,
      "/export": proxied,
      "^/sessions/[^/]+/(terminal|log|ports)": proxied,
    },
  },
  test: {
    environment: "happy-dom",
    include: ["src/**/*.test.{ts,tsx}"],
    css: false,
    setupFiles: ["src/testing/setup.ts"],
    testTimeout: 300_000,
  },
});
