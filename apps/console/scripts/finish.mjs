// After a build: writes a gzip file beside every text asset, prints what the first page loads, and refuses too much.
import { readFileSync, readdirSync, writeFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";

const MOST_KIB = 200;
const dist = new URL("../dist/", import.meta.url).pathname;
const manifest = JSON.parse(readFileSync(join(dist, ".vite/manifest.json"), "utf8"));
rmSync(join(dist, ".vite"), { recursive: true });

const packed = new Map();
for (const name of readdirSync(dist, { recursive: true })) {
  if (!/\.(js|css|svg)$/.test(name)) continue;
  const small = gzipSync(readFileSync(join(dist, name)), { level: 9 });
  writeFileSync(join(dist, `${name}.gz`), small);
  packed.set(name, small.length);
}

function loadedBy(entry, seen = new Set()) {
  const chunk = manifest[entry];
  if (seen.has(chunk.file)) return seen;
  seen.add(chunk.file);
  for (const style of chunk.css ?? []) seen.add(style);
  for (const next of chunk.imports ?? []) loadedBy(next, seen);
  return seen;
}

const kib = (files) => [...files].reduce((sum, file) => sum + (packed.get(file) ?? 0), 0) / 1024;
const start = loadedBy("index.html");
const pages = Object.keys(manifest).filter((name) => /^src\/pages\/\w+\/index\.tsx$/.test(name));
for (const page of pages) {
  const both = kib(loadedBy(page, new Set(start)));
  console.log(`first load of ${page.split("/")[2].padEnd(10)} ${both.toFixed(1)} KiB gzip (limit ${MOST_KIB})`);
  if (both > MOST_KIB) process.exitCode = 1;
}
