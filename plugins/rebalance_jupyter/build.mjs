// Builds src/ into static/view.js, the one file that is installed: node build.mjs
import { createHash } from "node:crypto";
import { readFileSync, readdirSync } from "node:fs";
import { createRequire } from "node:module";
import { fileURLToPath } from "node:url";

const { build } = createRequire(import.meta.url)("esbuild"); // also where NODE_PATH says
const here = fileURLToPath(new URL(".", import.meta.url));
const hash = createHash("sha256");
const modules = readdirSync(`${here}src`).filter((name) => name.endsWith(".js") && !name.endsWith(".test.js"));
for (const name of modules.sort())
  hash.update(readFileSync(`${here}src/${name}`));
await build({
  entryPoints: [`${here}src/index.js`],
  outfile: `${here}static/view.js`,
  banner: { js: `// Built from src, whose digest is ${hash.digest("hex")}` },
  bundle: true,
  minify: true,
  format: "esm",
  target: "es2023",
  charset: "utf8",
});
