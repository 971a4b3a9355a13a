// The tab "What if" in real headless Chromium.
import assert from "node:assert/strict";
import { eventually, hash, onPage, url } from "./reports.mjs";

const answer = (page) => page.locator(".whatif .lead").innerText();
/** The seconds in a text such as "It would take 1.5 s instead of 3 s". */
const times = (text) =>
  [...text.matchAll(/([\d.,]+) (ms|s|min|h)/g)].map(
    ([, number, unit]) => Number(number.replace(",", "")) * { ms: 1e-3, s: 1, min: 60, h: 3600 }[unit],
  );

onPage("what if: slots and changes are put together, and the link keeps them", async (page) => {
  await page.goto(url("day.html", "#/"));
  await page.waitForSelector("table tbody tr [data-row]");
  await page.locator("table tbody tr [data-row]").first().click();
  await page.getByRole("tab", { name: "What if" }).click();
  await page.waitForSelector(".whatif");
  assert.match(await answer(page), /^It takes [\d.,]+ m?s\. Choose what would be different\.$/);
  const [now] = times(await answer(page));
  // The keyboard moves the slider.
  await page.locator(".whatif input[type=range]").focus();
  await page.keyboard.press("ArrowLeft");
  await eventually(async () => assert.match(await answer(page), /^It would take .* instead of .*, \d+% longer\.$/));
  const [slower, unchanged] = times(await answer(page));
  assert.ok(slower > now && Math.abs(unchanged - now) <= 0.001 * now + 0.01, `${slower} ${unchanged} ${now}`);
  assert.match(await hash(page), /whatif\?slots=\d+$/);
  const change = page.locator(".whatif input[type=checkbox]").first();
  await change.check();
  await eventually(async () => {
    const [both] = times(await answer(page));
    assert.ok(both < slower, `${both} ${slower}`);
  });
  const command = await page.locator(".whatif .command code").innerText();
  assert.match(command, /^unfuse what-if .* --query \d+ slots=\d+ [a-z]+=\S+$/);
  // Who opens the link sees the same.
  const shown = await answer(page);
  await page.reload();
  await page.waitForSelector(".whatif");
  assert.equal(await answer(page), shown);
  assert.ok(await page.locator(".whatif input[type=checkbox]").first().isChecked());
});
