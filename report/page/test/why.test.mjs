// Contention and skew in real headless Chromium.
import assert from "node:assert/strict";
import { eventually, hash, onPage, texts, url } from "./reports.mjs";

const percents = async (locator) =>
  (await locator.allInnerTexts()).map((text) => parseFloat(text.match(/([\d.]+)%/)?.[1] ?? "0"));

onPage("contention: who made whom wait adds up, and each level narrows the others", async (page) => {
  await page.goto(url("day.html", "#/contention"));
  await page.waitForSelector("table.blame tbody tr");
  await page.locator("table.blame").last().locator("tbody tr a").first().click();
  await page.waitForSelector(".level .entry");
  assert.match(await hash(page), /query\/0-\d+\/contention/);
  const levels = page.locator(".level");
  assert.equal(await levels.count(), 5);
  for (let at = 0; at < 5; at++) {
    const parts = await percents(levels.nth(at).locator(".entry .part").filter({ hasText: "%" }));
    const sum = parts.reduce((a, b) => a + b);
    const all = (await levels.nth(at).locator(".hint").count()) === 0;
    assert.ok(all ? Math.abs(sum - 100) < 1 : sum > 50 && sum < 100, `${at}: ${parts}`);
  }
  const told = await page.locator(".contention > .lead").first().innerText();
  assert.match(told, /waiting for slots included\. Others account for [\d.]+ m?s(, [a-zA-Z' ]+ for [\d.]+ m?s)*\.$/);
  const blamed = await percents(page.locator("table.blame").first().locator("tbody tr .strong"));
  assert.ok(Math.abs(blamed.reduce((a, b) => a + b) - 100) < 1, `${blamed}`);
  // The bars of the tallest column fill the chart, and the keyboard can choose a column.
  const heights = await page
    .locator(".column")
    .evaluateAll((columns) =>
      columns.map(
        (c) =>
          [...c.children].reduce((sum, part) => sum + part.getBoundingClientRect().height, 0) /
          c.getBoundingClientRect().height,
      ),
    );
  assert.ok(Math.abs(Math.max(...heights) - 1) < 0.02, `${heights}`);
  await page.locator("[data-column]").first().focus();
  await page.keyboard.press("ArrowRight");
  await page.keyboard.press("Enter");
  await page.waitForSelector(".slice");
  const command = await page.locator(".slice pre").innerText();
  assert.match(command, /unfuse blame .* --victim \d+ --since \d{4}-[\dT:-]+Z --until \d{4}-[\dT:-]+Z$/);
  const network = levels.nth(1).locator(".entry", { hasText: "network" });
  const share = (await percents(network.locator(".part").filter({ hasText: "%" })))[0];
  await network.click();
  await page.waitForFunction(() => /at-resource=network/.test(location.hash));
  await eventually(async () => {
    const waits = await texts(page, ".level:nth-child(3) .entry .what");
    assert.ok(waits.length > 0 && waits.every((text) => /^network fetch on/.test(text)), `${waits}`);
  });
  const left = await percents(levels.nth(4).locator(".entry .part").filter({ hasText: "%" }));
  assert.ok(Math.abs(left.reduce((a, b) => a + b) - share) < 1, `${left} of ${share}`);
  await page.goBack();
  await page.locator(".entry[aria-pressed=true]").waitFor({ state: "detached" });
});

onPage("skew: all skewed stages, and of each its tasks, records and what to do", async (page) => {
  await page.goto(url("day.html", "#/skew"));
  await page.waitForSelector("table.blame tbody tr");
  assert.match(
    await page.locator(".lead").first().innerText(),
    /of 450 stages wait for slow tasks; alone, they would end .* sooner/,
  );
  const stage = page.locator("table.blame tbody tr", { hasText: /^13\D/ });
  assert.match(await stage.innerText(), /^13.*computation skew.*Query 4, insert overwrite daily_4/s);
  // Enter opens the query, with this stage selected.
  await stage.locator("[data-row]").press("Enter");
  await page.waitForSelector(".chart");
  assert.match(await hash(page), /query\/0-4\/skew\?stage=13/);
  const heights = await page
    .locator(".column")
    .evaluateAll((columns) =>
      columns.map((c) =>
        [...c.children].map((part) => part.getBoundingClientRect().height / c.getBoundingClientRect().height),
      ),
    );
  assert.equal(heights.length, 8);
  assert.deepEqual(
    heights.map(([, beyond]) => beyond > 0),
    [false, false, false, false, false, true, false, false],
  );
  assert.ok(Math.abs(heights[5][0] + heights[5][1] - 1) < 0.02, `${heights}`);
  const slow = page.getByRole("table", { name: "Slow tasks" }).locator("tbody tr");
  assert.match(await slow.innerText(), /^5.*computation skew.*m?s for 123456,.*MiB typical/s);
  assert.match(
    await page.locator("p", { hasText: "Next:" }).innerText(),
    /look at its slow records.*unfuse top DIR --stage 13 --by line/,
  );
  // The keyboard can choose a task.
  await page.locator("[data-column]").first().focus();
  for (let at = 0; at < 5; at++) await page.keyboard.press("ArrowRight");
  await page.keyboard.press("Enter");
  await page.waitForSelector(".slice");
  assert.match(await hash(page), /task=5/);
  assert.match(await page.locator(".slice").innerText(), /^Task 5 took .* more than a typical one/);
  assert.equal(await slow.getAttribute("aria-selected"), "true");
  await page.goBack();
  await page.locator(".slice").waitFor({ state: "detached" });
  // The list has the record with its place and the code that took its time.
  const record = page.getByRole("table", { name: "Slow records" }).locator("tbody tr").first();
  assert.match(await record.innerText(), /stage 13, partition 5, hdfs:\/\/data\/sales\.csv at byte 1696227/);
  assert.match(await record.innerText(), /100\.0% com\.example\.Daily/);
  const result = page.getByRole("table", { name: "Slow results" }).locator("tbody tr").first();
  assert.match(await result.innerText(), /=2610279.*because of.*123456,/s);
});

onPage("skew: where nothing is skewed, a sentence says so", async (page) => {
  await page.goto(url("canonical.html", "#/skew"));
  await page.waitForSelector("text=/None of \\d+ stages (waits|has)/");
  assert.match(await page.locator("main").innerText(), /unfuse run --records -- COMMAND/);
  await page.goto(url("canonical.html", "#/query/0-3/skew"));
  await page.waitForSelector("text=None of its stages is found to wait for slow tasks");
});
