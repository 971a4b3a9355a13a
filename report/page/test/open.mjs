// Prints milliseconds until the list is visible, until its next page is, and until a query's plan is.
import { pathToFileURL } from "node:url";
import { launch, watched } from "./browser.mjs";

const browser = await launch();
const { page, wrong } = await watched(browser);
const timed = async (act, selector) => {
  const begun = performance.now();
  await act();
  await page.waitForSelector(selector);
  console.log((performance.now() - begun).toFixed(0));
};
await timed(
  () => page.goto(pathToFileURL(process.argv[2]).href, { waitUntil: "commit", timeout: 60_000 }),
  "table.list tbody tr",
);
await page.waitForLoadState();
// With one line per run, the list has many pages.
await page.evaluate(() => (location.hash = "#/?runs=all"));
await page.waitForSelector("text=1–50 of");
await timed(() => page.locator("[data-row]").first().press("PageDown"), "text=51–100");
await timed(() => page.locator("[data-row]").first().press("Enter"), "table.plan tbody tr");
await browser.close();
if (wrong.length) throw new Error(wrong.join("\n"));
