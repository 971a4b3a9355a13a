// Screenshots of every view of a report, light and dark, to be looked at: node test/shots.mjs FILE DIR [HASH=NAME…]
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { launch, watched } from "./browser.mjs";

const [file, dir, ...hashes] = process.argv.slice(2);
mkdirSync(dir, { recursive: true });
const browser = await launch();
for (const colorScheme of ["light", "dark"]) {
  const { page, wrong, close } = await watched(browser, { colorScheme });
  for (const hash of hashes) {
    const [place, name] = hash.split("=>");
    await page.goto(`${pathToFileURL(file).href}${place}`);
    await page.waitForTimeout(400);
    await page.screenshot({ path: join(dir, `${name}-${colorScheme}.png`) });
  }
  if (wrong.length) console.error(wrong.join("\n"));
  await close();
}
await browser.close();
