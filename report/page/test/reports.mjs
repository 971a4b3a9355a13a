// Reports of `unfuse` itself for tests in real headless Chromium. UNFUSE and UNFUSE_BENCH are the paths of the programs
// that make them; `make test-page` builds both.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { after, before, test } from "node:test";
import { setTimeout } from "node:timers/promises";
import { fileURLToPath, pathToFileURL } from "node:url";
import { launch, watched } from "./browser.mjs";

const root = join(dirname(fileURLToPath(import.meta.url)), "../../..");
const unfuse = process.env.UNFUSE ?? join(root, "target/release/unfuse");
const bench = process.env.UNFUSE_BENCH ?? join(root, "target/release/unfuse-bench");
const dir = mkdtempSync(join(tmpdir(), "unfuse-page-"));
const run = (program, ...args) => execFileSync(program, args, { stdio: ["ignore", "ignore", "pipe"] });
/** A place in a report: `canonical.html` shows the recorded fixture, `day.html` compares two synthetic days. */
export const url = (name, hash = "") => pathToFileURL(join(dir, name)).href + hash;

export let browser;
before(async () => {
  const fixture = join(root, "cli/tests/fixtures/canonical");
  run(unfuse, "report", fixture, "-o", join(dir, "canonical.html"));
  run(bench, "report", "--write", join(dir, "old"), "--queries", "120");
  run(bench, "report", "--write", join(dir, "new"), "--queries", "150", "--heavier");
  run(unfuse, "report", join(dir, "new"), "--against", join(dir, "old"), "-o", join(dir, "day.html"));
  browser = await launch();
});
after(async () => {
  await browser?.close();
  rmSync(dir, { recursive: true, force: true });
});

/** A test with its own page, which must not log a warning, throw, open a dialog or use the network. */
export function onPage(name, act, options) {
  test(name, { timeout: 120_000 }, async () => {
    const { page, wrong, close } = await watched(browser, options);
    await act(page);
    assert.deepEqual(wrong, []);
    await close();
  });
}

/** Repeats `check` until it no longer throws, for 10 s at most: the page draws some time after its URL has changed. */
export async function eventually(check) {
  for (const end = Date.now() + 10_000; ; await setTimeout(20)) {
    try {
      return await check();
    } catch (error) {
      if (Date.now() > end) throw error;
    }
  }
}

export const hash = (page) => page.evaluate(() => location.hash);
export const texts = (page, selector) => page.locator(selector).allInnerTexts();
/** The label or text of the element that has the focus. */
export const focused = (page) =>
  page.evaluate(() => document.activeElement?.getAttribute("aria-label") ?? document.activeElement?.textContent ?? "");
