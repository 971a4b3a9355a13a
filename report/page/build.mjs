// Bundles the page into one file without data, dist/page.html. `unfuse report` puts the data at the markers.
import { createHash } from "node:crypto";
import { mkdirSync, writeFileSync } from "node:fs";
import { build } from "esbuild";

const common = {
  bundle: true,
  minify: true,
  write: false,
  target: ["chrome120", "firefox120", "safari17"],
  charset: "utf8",
};
const [js, css] = await Promise.all([
  build({ ...common, entryPoints: ["src/main.tsx"], format: "iife", jsx: "automatic", jsxImportSource: "preact" }),
  build({ ...common, entryPoints: ["src/page.css"] }),
]).then((results) => results.map((result) => result.outputFiles[0].text.trim()));
if (/<\/script|<!--/i.test(js) || /<\/style/i.test(css)) throw new Error("the bundle would end its own element");

// The content security policy allows this script and this style only, and forbids everything else.
const hash = (text) => `'sha256-${createHash("sha256").update(text).digest("base64")}'`;
const policy = `default-src 'none'; script-src ${hash(js)}; style-src ${hash(css)}; base-uri 'none'; form-action 'none'`;

mkdirSync("dist", { recursive: true });
writeFileSync(
  "dist/page.html",
  `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="generator" content="unfuse">
<title>unfuse report</title>
<style>${css}</style>
</head>
<body>
<div id="page"><noscript>This report needs JavaScript; it loads nothing from the network.</noscript></div>
<!--unfuse:first-->
<script>${js}</script>
<!--unfuse:rest-->
</body>
</html>
`,
);
console.log(`dist/page.html: script ${js.length} bytes, style ${css.length} bytes`);
