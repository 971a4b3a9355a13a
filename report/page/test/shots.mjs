// Screenshots of a report, for people to check. PROFILE is a profile directory or an existing report.
//
//   node test/shots.mjs PROFILE DIR [QUERY]       every page of the report and of a query, at both widths, in both themes
//   node test/shots.mjs --readme PROFILE OUT.png  the picture of the README; needs pngquant (Debian: same name)
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, statSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { launch, watched } from "./browser.mjs";
import { places } from "./places.mjs";

/** Size of the largest picture that may go into the repository, bytes. */
const LARGEST = 200_000;
const root = join(dirname(fileURLToPath(import.meta.url)), "../../..");
const unfuse = process.env.UNFUSE ?? join(root, "target/release/unfuse");

const readme = process.argv[2] === "--readme";
const [profile, out, query] = process.argv.slice(readme ? 3 : 2);
if (!profile || !out) throw new Error("say a profile or a report, and where the pictures go");

const temporary = mkdtempSync(join(tmpdir(), "unfuse-shots-"));
let file = profile;
if (statSync(profile).isDirectory()) {
  // The commands in the picture contain this path, so it is short.
  file = join(temporary, "report.html");
  symlinkSync(resolve(profile), join(temporary, "profile"));
  execFileSync(unfuse, ["report", "profile", "-o", file], { cwd: temporary, stdio: ["ignore", "ignore", "inherit"] });
}
const browser = await launch();
try {
  if (readme) await pictureOfReadme();
  else await picturesOfAll();
} finally {
  await browser.close();
  rmSync(temporary, { recursive: true, force: true });
}

/** Opens a place and waits until its data is there. */
async function open(page, place) {
  await page.goto("about:blank");
  await page.goto(pathToFileURL(file).href + place);
  await page.waitForSelector("main h1");
  await page.waitForFunction(() => !document.querySelector("main")?.textContent.includes("Unpacking"));
}

async function picturesOfAll() {
  mkdirSync(out, { recursive: true });
  for (const colorScheme of ["light", "dark"])
    for (const width of [1280, 390]) {
      const { page, wrong, close } = await watched(browser, { colorScheme, viewport: { width, height: 844 } });
      await open(page, "#/");
      const first = (await page.locator("table.list [data-row]").first().getAttribute("href")) ?? "";
      const [app, number] = query ? ["0", query] : (/(\d+)-(\d+)/.exec(first)?.slice(1) ?? ["0", "0"]);
      for (const [name, place] of Object.entries(places(number, app))) {
        await open(page, place);
        // The source is long; its first screen is enough.
        const path = join(out, `${name}-${width}-${colorScheme}.png`);
        await page.screenshot({ path, fullPage: name !== "source" });
      }
      if (wrong.length) console.error(wrong.join("\n"));
      await close();
    }
}

/** The verdict and the first queries, without the path of the profile, which differs between machines. */
async function pictureOfReadme() {
  const options = { colorScheme: "light", deviceScaleFactor: 2, viewport: { width: 1100, height: 800 } };
  const { page, close } = await watched(browser, options);
  await open(page, "#/");
  await page.evaluate(() => document.querySelector("header .path")?.remove());
  const end = await page.evaluate(() => {
    const rows = [...document.querySelectorAll("table.list tbody tr")].slice(0, 6);
    return rows.at(-1)?.getBoundingClientRect().bottom ?? document.body.scrollHeight;
  });
  mkdirSync(dirname(out), { recursive: true });
  await page.screenshot({ path: out, fullPage: true, clip: { x: 0, y: 0, width: 1100, height: Math.ceil(end) + 4 } });
  await close();
  // A palette of 256 colours makes it a third as large.
  execFileSync("pngquant", ["--force", "--output", out, "256", out]);
  const { size } = statSync(out);
  console.log(`${out}: ${size} bytes`);
  if (size > LARGEST) throw new Error(`${out} has ${size} bytes; at most ${LARGEST} are to be put into the repository`);
}
