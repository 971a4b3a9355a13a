// The page in real headless Chromium, with the reports of `unfuse` itself. UNFUSE and UNFUSE_BENCH say which
// programs; `make test-page` builds them.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath, pathToFileURL } from "node:url";
import { launch, watched } from "./browser.mjs";

const root = join(dirname(fileURLToPath(import.meta.url)), "../../..");
const unfuse = process.env.UNFUSE ?? join(root, "target/release/unfuse");
const bench = process.env.UNFUSE_BENCH ?? join(root, "target/release/unfuse-bench");
const dir = mkdtempSync(join(tmpdir(), "unfuse-page-"));
const run = (program, ...args) => execFileSync(program, args, { stdio: ["ignore", "ignore", "pipe"] });
const url = (name, hash = "") => pathToFileURL(join(dir, name)).href + hash;

let browser;
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

/** A test with a page of its own; nothing may be logged, thrown or asked of the network in it. */
function onPage(name, act, options) {
  test(name, { timeout: 120_000 }, async () => {
    const { page, wrong, close } = await watched(browser, options);
    await act(page);
    assert.deepEqual(wrong, []);
    await close();
  });
}

const hash = (page) => page.evaluate(() => location.hash);
const texts = (page, selector) => page.locator(selector).allInnerTexts();
/** What has the focus now. */
const focused = (page) =>
  page.evaluate(() => document.activeElement?.getAttribute("aria-label") ?? document.activeElement?.textContent ?? "");

onPage("the list has the queries by cost, and work outside queries at its end", async (page) => {
  await page.goto(url("canonical.html"));
  await page.waitForSelector("table.list tbody tr");
  const rows = await texts(page, "table.list tbody tr");
  assert.equal(rows.length, 8);
  assert.match(rows[0], /save at NativeMethodAccessorImpl.*6\.01 s.*23\.1%/s);
  assert.match(rows.at(-1), /work outside queries/);
  // In the other order the first is the last one started.
  await page.getByRole("button", { name: "Started" }).click();
  assert.match((await texts(page, "table.list tbody tr"))[0], /^6/);
  assert.match(await hash(page), /sort=started/);
});

onPage("by keyboard: filter, choose, open, back", async (page) => {
  await page.goto(url("canonical.html"));
  await page.waitForSelector("table.list tbody tr");
  await page.keyboard.press("/");
  await page.keyboard.type("save");
  await page.waitForFunction(() => document.querySelectorAll("table.list tbody tr").length === 5);
  await page.keyboard.press("Escape");
  await page.locator("[data-row]").first().focus();
  await page.keyboard.press("ArrowDown");
  assert.match(await focused(page), /^3save at/);
  await page.keyboard.press("Enter");
  await page.waitForSelector("table.plan tbody tr");
  assert.match(await hash(page), /query\/0-3\/plan/);
  await page.goBack();
  await page.waitForSelector("table.list tbody tr");
  assert.equal(await page.locator("#filter").inputValue(), "save");
});

onPage("the plan has self and total of every operator, and all adds up", async (page) => {
  await page.goto(url("canonical.html", "#/query/0-3/plan"));
  await page.waitForSelector("table.plan tbody tr");
  const aggregate = page.locator("tr[data-node]", { hasText: "partial_avg" });
  assert.match(await aggregate.innerText(), /3\.60 s.*70\.1%.*4\.69 s.*20,000.*7/s);
  const width = (part) =>
    aggregate
      .locator(`.bar .${part}`)
      .evaluate((bar) => bar.getBoundingClientRect().width / bar.parentElement.getBoundingClientRect().width);
  assert.ok(Math.abs((await width("part")) - 0.701) < 0.01);
  assert.ok(Math.abs((await width("whole")) - 0.913) < 0.01);
  const shares = await page.locator("table.plan tbody tr td:nth-child(4)").allInnerTexts();
  const sum = shares.reduce((sum, text) => sum + (parseFloat(text) || 0), 0);
  assert.ok(Math.abs(sum - 100) < 1.5, `${sum}`);
  // Left closes the subtree, Enter shows the whole text.
  const rows = await page.locator("tr[data-node]").count();
  await aggregate.focus();
  await page.keyboard.press("ArrowLeft");
  assert.ok((await page.locator("tr[data-node]").count()) < rows);
  await page.keyboard.press("ArrowRight");
  assert.equal(await page.locator("tr[data-node]").count(), rows);
  await page.keyboard.press("Enter");
  assert.match(await page.locator("tr.more pre").innerText(), /_groupingexpression/);
});

onPage("stages have CPU, waiting and tasks", async (page) => {
  await page.goto(url("canonical.html", "#/query/0-3/stages"));
  const stage = page.locator("table.stages tbody tr").nth(1);
  await stage.waitFor();
  assert.match(await stage.innerText(), /7.*done.*2 \/ 2.*3\.29 s.*4\.95 s.*1\.32 s/s);
  await stage.focus();
  await page.keyboard.press("Enter");
  await page.waitForSelector("text=2 tasks of stage 7");
  assert.equal(await page.locator("table.tasks tbody tr").count(), 2);
});

onPage("the flame graph zooms by keyboard, and the URL has it", async (page) => {
  await page.goto(url("canonical.html", "#/query/0-3/flame"));
  await page.locator('[data-frame="-1"]').focus();
  for (const key of ["ArrowDown", "ArrowDown", "ArrowDown"]) await page.keyboard.press(key);
  assert.match(await focused(page), /^HashAggregate/);
  const frame = () => page.locator(".frame:focus").boundingBox();
  const before = (await frame()).width;
  await page.keyboard.press("Enter");
  await page.waitForFunction(() => location.hash.includes("zoom="));
  await page.waitForFunction(
    (before) => document.querySelector(".frame:focus")?.getBoundingClientRect().width > before,
    before,
  );
  assert.match(await page.locator(".told").innerText(), /HashAggregate.*total .* s/s);
  await page.keyboard.press("Escape");
  await page.waitForFunction(() => !location.hash.includes("zoom="));
  await page.goBack();
  await page.waitForFunction(() => location.hash.includes("zoom="));
  // All frames: code and operators.
  await page.getByRole("link", { name: "All frames" }).press("Enter");
  await page.waitForSelector(".frame.k-java");
  assert.ok((await page.locator(".frame.k-generated").count()) > 3);
  assert.ok((await page.locator(".frame.k-operator").count()) > 3);
});

onPage("the source has hot lines with their operators", async (page) => {
  await page.goto(url("canonical.html", "#/query/0-3/source"));
  await page.waitForSelector("table.code tr.hot");
  await page.locator(".hottest button").first().press("Enter");
  const line = page.locator("table.code tr:focus");
  assert.match(await line.innerText(), /1\.10 s.*21\.4%.*254/s);
  const cut = await page.locator("table.code tbody tr").count();
  await page.getByLabel(/all 451 lines/).press("Space");
  assert.ok((await page.locator("table.code tbody tr").count()) > cut);
  assert.ok((await texts(page, "table.code .region")).some((text) => /[+<] BroadcastHashJoin/.test(text)));
});

onPage("tabs move by arrows", async (page) => {
  await page.goto(url("canonical.html", "#/query/0-3/plan"));
  await page.getByRole("tab", { name: "Plan" }).focus();
  await page.keyboard.press("ArrowRight");
  await page.waitForSelector("table.stages");
  assert.equal(await page.getByRole("tab", { selected: true }).innerText(), "Stages and tasks");
});

onPage("a list of many queries is paged", async (page) => {
  await page.goto(url("day.html"));
  await page.waitForSelector("table.list tbody tr");
  assert.equal(await page.locator("table.list tbody tr").count(), 50);
  await page.locator("[data-row]").first().press("PageDown");
  await page.waitForSelector("text=51–100 of 151");
  await page.goto(url("day.html", "#/query/0-96/plan"));
  assert.match(await page.getByRole("alert").innerText(), /<b>disk<\/b>/);
});

onPage("hostile text is text", async (page) => {
  await page.goto(url("day.html", "#/query/0-0/plan"));
  await page.waitForSelector("table.plan tbody tr");
  assert.match(await page.locator("h1").innerText(), /<\/script><img src=x onerror=/);
  for (const tab of ["stages", "flame", "source", "compare"]) {
    await page.goto(url("day.html", `#/query/0-0/${tab}`));
    await page.waitForTimeout(100);
  }
  // Characters that a page would obey are shown.
  const odd = '</script><img src=x onerror="window.broken=1"><script>window.broken=1</script>';
  await page.goto(url("day.html", "#/query/0-1/plan"));
  const operator = page.locator("tr[data-node]", { hasText: odd });
  await operator.waitFor();
  const heading = await page.locator("h1").innerText();
  for (const part of ["select '<!--', \"]]>\", '\\u{202e}', '${x}' --", "&amp;", "\\u{9b}2J\\u{2028}\\u{2066}"]) {
    assert.ok(heading.includes(part), `${part}: ${heading}`);
  }
  await operator.focus();
  await page.keyboard.press("Enter");
  assert.equal(await page.locator("tr.more pre").innerText(), odd);
  const shown = [await page.locator("main").innerText()];
  // Hosts.
  await page.goto(url("day.html", "#/query/0-4/skew?stage=13"));
  const slow = page.getByRole("table", { name: "Slow tasks" }).locator("tbody tr").first();
  await slow.waitFor();
  assert.ok((await slow.innerText()).includes('executor 1 on worker-1<img src=x onerror="window.broken=1">\\u{2028}'));
  shown.push(await page.locator("main").innerText());
  await page.goto(url("day.html", "#/contention"));
  await page.waitForSelector("table.blame tbody tr");
  shown.push(await page.locator("main").innerText());
  for (const text of shown) assert.doesNotMatch(text, /[\u0080-\u009f\u2028-\u202e\u2066-\u2069]/);
  // What records hold, and methods' names.
  await page.goto(url("day.html", "#/query/0-4/skew"));
  await page.waitForSelector("table.records");
  const record = page.getByRole("table", { name: "Slow records" }).locator("tbody tr").first();
  assert.match(await record.innerText(), /123456,<img src=x onerror="window\.broken=1">,.*77777/);
  assert.match(await record.innerText(), /com\.example\.Daily\.<parse>/);
  assert.match(
    (await texts(page, "table.records tbody tr")).join(),
    /<\/script><script>window\.broken=1<\/script>=2610279/,
  );
  for (const odd of [
    "#/query/%E0%A4%A/<img>",
    "#/query/0-0/flame?zoom=1e9",
    "#/?page=-4&sort=constructor",
    "#/compare/%00",
    "#/query/0-4/skew?stage=<b>&task=__proto__&records=7",
  ]) {
    await page.goto(url("day.html", odd));
    await page.waitForTimeout(100);
    assert.notEqual((await page.locator("main").innerText()).trim(), "", odd);
  }
  assert.equal(await page.evaluate(() => window.broken), undefined);
  assert.equal(await page.locator("img").count(), 0);
});

onPage("the comparison shows what changed, operator by operator", async (page) => {
  await page.goto(url("day.html", "#/compare"));
  await page.waitForSelector("table.list tbody tr");
  const all = await page.locator("main").innerText();
  assert.match(all, /other plan/);
  const slower = page.locator("table.list tbody tr", { hasText: "daily_5 " });
  assert.match(await slower.innerText(), /2 → 3|3 → 3/);
  await slower.locator("a").press("Enter");
  await page.waitForSelector("table.compare");
  assert.ok((await page.locator("table.compare .worse").count()) > 0);
  await page.goto(url("day.html", "#/query/0-5/compare"));
  await page.waitForSelector("table.compare");
});

onPage("nothing can be loaded", async (page) => {
  await page.goto(url("canonical.html"));
  const policy = await page.locator('meta[http-equiv="Content-Security-Policy"]').getAttribute("content");
  assert.match(policy, /^default-src 'none'; script-src 'sha256-[^']+'; style-src 'sha256-[^']+';/);
});

for (const colorScheme of ["light", "dark"]) {
  onPage(
    `texts can be read: ${colorScheme}`,
    async (page) => {
      for (const place of [
        "#/",
        "#/query/0-3/plan",
        "#/query/0-3/stages",
        "#/query/0-3/flame?level=full",
        "#/query/0-3/source",
      ]) {
        await page.goto(url("canonical.html", place));
        await page.waitForTimeout(300);
        const low = await page.evaluate(lowContrast);
        assert.deepEqual(low, [], place);
      }
      await page.goto(url("day.html", "#/query/0-4/skew"));
      await page.waitForSelector("table.records");
      assert.deepEqual(await page.evaluate(lowContrast), [], "skew");
      const back = await page.evaluate(() => getComputedStyle(document.body).backgroundColor);
      assert.equal(back === "rgb(255, 255, 255)", colorScheme === "light");
    },
    { colorScheme },
  );
}

/** Texts with a contrast below 3 to their background (WCAG asks 4.5 of texts that matter; zeros and
 *  line numbers are fainter by intent). */
function lowContrast() {
  const rgb = (text) => text.match(/[\d.]+/g).map(Number);
  const light = ([r, g, b]) => {
    const part = (v) => ((v /= 255) <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
    return 0.2126 * part(r) + 0.7152 * part(g) + 0.0722 * part(b);
  };
  const backOf = (element) => {
    for (let at = element; at; at = at.parentElement) {
      const [r, g, b, alpha = 1] = rgb(getComputedStyle(at).backgroundColor);
      if (alpha > 0.99) return [r, g, b];
    }
    return [255, 255, 255];
  };
  const low = new Set();
  for (const element of document.querySelectorAll("main *, header *")) {
    const own = [...element.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim());
    if (!own || element.closest(":disabled") || !element.checkVisibility()) continue;
    const [a, b] = [light(rgb(getComputedStyle(element).color)), light(backOf(element))].sort((a, b) => b - a);
    if ((a + 0.05) / (b + 0.05) < 3) low.add(`${element.className}: ${element.textContent.slice(0, 30)}`);
  }
  return [...low];
}

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
  const told = await page.locator(".contention > .legend").first().innerText();
  assert.match(told, /waiting for slots included\. Others account for [\d.]+ m?s(, [a-zA-Z' ]+ for [\d.]+ m?s)*\.$/);
  const blamed = await percents(page.locator("table.blame").first().locator("tbody tr .strong"));
  assert.ok(Math.abs(blamed.reduce((a, b) => a + b) - 100) < 1, `${blamed}`);
  // The bars of the tallest column fill the chart, and a column is a place to go to.
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
  assert.match(await page.locator(".slice pre").innerText(), /unfuse blame .* --victim \d+ --window [\d.]+\.\.[\d.]+/);
  const network = levels.nth(1).locator(".entry", { hasText: "network" });
  const share = (await percents(network.locator(".part").filter({ hasText: "%" })))[0];
  await network.click();
  await page.waitForFunction(() => /at-resource=network/.test(location.hash));
  const waits = await texts(page, ".level:nth-child(3) .entry .what");
  assert.ok(waits.length > 0 && waits.every((text) => /^network fetch on/.test(text)), `${waits}`);
  const left = await percents(levels.nth(4).locator(".entry .part").filter({ hasText: "%" }));
  assert.ok(Math.abs(left.reduce((a, b) => a + b) - share) < 1, `${left} of ${share}`);
  await page.goBack();
  assert.equal(await page.locator(".entry[aria-pressed=true]").count(), 0);
});

onPage("without collected use there is no contention", async (page) => {
  await page.goto(url("canonical.html", "#/query/0-3/contention"));
  await page.waitForSelector("table.plan tbody tr");
  assert.equal(await page.getByText("Contention").count(), 0);
});

onPage("skew: all skewed stages, and of each its tasks, records and what to do", async (page) => {
  await page.goto(url("day.html", "#/skew"));
  await page.waitForSelector("table.blame tbody tr");
  assert.match(
    await page.locator(".legend").first().innerText(),
    /of 450 stages wait for slow tasks; alone, they would end .* sooner/,
  );
  const stage = page.locator("table.blame tbody tr", { hasText: /^13\D/ });
  assert.match(await stage.innerText(), /^13.*computation skew.*Query 4, insert overwrite daily_4/s);
  // By keyboard to the query, with that stage open.
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
  // A task is a place to go to.
  await page.locator("[data-column]").first().focus();
  for (let at = 0; at < 5; at++) await page.keyboard.press("ArrowRight");
  await page.keyboard.press("Enter");
  await page.waitForSelector(".slice");
  assert.match(await hash(page), /task=5/);
  assert.match(await page.locator(".slice").innerText(), /^Task 5 took .* more than a typical one/);
  assert.equal(await slow.getAttribute("aria-selected"), "true");
  await page.goBack();
  assert.equal(await page.locator(".slice").count(), 0);
  // The record is told with its place and what the code was at.
  const record = page.getByRole("table", { name: "Slow records" }).locator("tbody tr").first();
  assert.match(await record.innerText(), /stage 13, partition 5, hdfs:\/\/data\/sales\.csv at byte 1696227/);
  assert.match(await record.innerText(), /100\.0% com\.example\.Daily/);
  const result = page.getByRole("table", { name: "Slow results" }).locator("tbody tr").first();
  assert.match(await result.innerText(), /=2610279.*because of.*123456,/s);
});

onPage("skew: where nothing is skewed, a sentence says so", async (page) => {
  await page.goto(url("canonical.html", "#/skew"));
  await page.waitForSelector("text=/None of \\d+ stages waits for slow tasks/");
  assert.match(await page.locator("main").innerText(), /unfuse run --records -- COMMAND/);
  await page.goto(url("canonical.html", "#/query/0-3/skew"));
  await page.waitForSelector("text=None of its stages is found to wait for slow tasks");
});
