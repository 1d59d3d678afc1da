import react from "@vitejs/plugin-react";
import { defineConfig } from "vitest/config";

// `./` keeps every address relative: the gateway writes <base> into each page, so that any path prefix works.
export default defineConfig({
  base: "./",
  plugins: [react()],
  build: {
    target: "es2022",
    cssTarget: ["chrome123", "firefox120", "safari17.5"],
    manifest: true,
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    chunkSizeWarningLimit: 2000,
    rolldownOptions: { input: ["index.html", "docs.html"] },
  },
  test: { environment: "jsdom", include: ["src/**/*.test.{ts,tsx}"], restoreMocks: true },
});
