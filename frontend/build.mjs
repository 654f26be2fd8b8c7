// Build everything under static/ that is not written by hand: app.css, icons.svg, vendor/ and its manifest.
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { cpSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { icons } from "./icons.mjs";

const here = dirname(fileURLToPath(import.meta.url));
const modules = join(here, "node_modules");
const out = process.argv[2] ?? join(here, "../static");

// [package, licence, [[file in the package, file under static/], …]]
const vendored = [
  ["htmx.org", "0BSD", [["dist/htmx.min.js", "vendor/htmx.min.js"]]],
  ["@fontsource-variable/inter", "OFL-1.1", [
    ["files/inter-latin-wght-normal.woff2", "vendor/inter-latin.woff2"],
    ["files/inter-latin-ext-wght-normal.woff2", "vendor/inter-latin-ext.woff2"],
    ["LICENSE", "vendor/inter-licence.txt"],
  ]],
];

const version = (name) => JSON.parse(readFileSync(join(modules, name, "package.json"), "utf8")).version;
const sha256 = (file) => createHash("sha256").update(readFileSync(file)).digest("hex");

function symbol(name) {
  const svg = readFileSync(join(modules, "lucide-static/icons", `${name}.svg`), "utf8");
  const body = svg.slice(svg.indexOf(">", svg.indexOf("<svg")) + 1, svg.lastIndexOf("</svg>"));
  const drawing = body.replace(/\s*\n\s*/g, "").trim();
  return `<symbol id="${name}" viewBox="0 0 24 24" fill="none" stroke="currentColor" stroke-width="1.75" ` +
    `stroke-linecap="round" stroke-linejoin="round">${drawing}</symbol>`;
}

function sprite() {
  const head = `<!-- Lucide ${version("lucide-static")}, ISC licence. Built by frontend/build.mjs. -->`;
  const symbols = icons.map(symbol).join("\n");
  writeFileSync(join(out, "icons.svg"), `${head}\n<svg xmlns="http://www.w3.org/2000/svg">\n${symbols}\n</svg>\n`);
}

function vendor() {
  const manifest = [];
  for (const [name, licence, files] of vendored) {
    for (const [from, to] of files) {
      cpSync(join(modules, name, from), join(out, to));
      manifest.push({ file: to, name, version: version(name), licence, sha256: sha256(join(out, to)) });
    }
  }
  manifest.push({
    file: "icons.svg", name: "lucide-static", version: version("lucide-static"), licence: "ISC",
    sha256: sha256(join(out, "icons.svg")),
  });
  writeFileSync(join(out, "vendor/manifest.json"), `${JSON.stringify(manifest, null, 2)}\n`);
}

mkdirSync(join(out, "vendor"), { recursive: true });
const tailwind = join(modules, "@tailwindcss/cli/dist/index.mjs");
const sheet = join(out, "app.css");
execFileSync(process.execPath, [tailwind, "-i", join(here, "css/app.css"), "-o", sheet, "--minify"], {
  cwd: here,
  stdio: ["ignore", "ignore", "inherit"],
});
sprite();
vendor();
