// The page in real headless Chromium.
import assert from "node:assert/strict";
import { eventually, focused, hash, onPage, texts, url } from "./reports.mjs";

onPage("the list has the queries by cost, and work outside queries at its end", async (page) => {
  await page.goto(url("canonical.html", "#/?runs=all"));
  await page.waitForSelector("table.list tbody tr");
  const rows = await texts(page, "table.list tbody tr");
  assert.equal(rows.length, 8);
  assert.match(rows[0], /^2.*6\.01 s.*23\.1%/s);
  assert.match(rows.at(-1), /work outside queries/);
  // By start, the query that started last is first.
  await page.getByRole("button", { name: "Started" }).click();
  await eventually(async () => assert.match((await texts(page, "table.list tbody tr"))[0], /^6/));
  assert.match(await hash(page), /sort=started/);
});

onPage("by keyboard: filter, choose, open, back", async (page) => {
  await page.goto(url("canonical.html", "#/?runs=all"));
  await page.waitForSelector("table.list tbody tr");
  await page.keyboard.press("/");
  await page.keyboard.type("save");
  await page.waitForFunction(() => document.querySelectorAll("table.list tbody tr").length === 5);
  await page.keyboard.press("Escape");
  await page.locator("[data-row]").first().focus();
  await page.keyboard.press("ArrowDown");
  assert.match(await focused(page), /^3/);
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
  await eventually(async () => assert.ok((await page.locator("tr[data-node]").count()) < rows));
  await page.keyboard.press("ArrowRight");
  await eventually(async () => assert.equal(await page.locator("tr[data-node]").count(), rows));
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
  for (let at = 0; at < 4; at++) await page.keyboard.press("ArrowDown");
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
  assert.ok((await page.locator('.frame[class*=" o-"]').count()) > 3);
});

onPage("the source has hot lines with their operators", async (page) => {
  await page.goto(url("canonical.html", "#/query/0-3/source"));
  await page.waitForSelector("table.code tr.hot");
  await page.locator(".hottest button").first().press("Enter");
  const line = page.locator("table.code tr:focus");
  assert.match(await line.innerText(), /1\.10 s.*21\.4%.*254/s);
  const cut = await page.locator("table.code tbody tr").count();
  await page.getByLabel(/all 451 lines/).press("Space");
  await eventually(async () => assert.ok((await page.locator("table.code tbody tr").count()) > cut));
  assert.ok((await texts(page, "table.code .region")).some((text) => /[+<] BroadcastHashJoin/.test(text)));
});

onPage("tabs move by arrows", async (page) => {
  await page.goto(url("canonical.html", "#/query/0-3/plan"));
  await page.getByRole("tab", { name: "Plan" }).focus();
  await page.keyboard.press("ArrowRight");
  await page.waitForSelector("table.waterfall");
  assert.equal(await page.getByRole("tab", { selected: true }).innerText(), "Wall time");
  await page.keyboard.press("ArrowRight");
  await page.waitForSelector(".whatif");
  assert.equal(await page.getByRole("tab", { selected: true }).innerText(), "What if");
  await page.keyboard.press("ArrowRight");
  await page.waitForSelector("table.stages");
  assert.equal(await page.getByRole("tab", { selected: true }).innerText(), "Stages and tasks");
});

onPage("a list of many queries is paged", async (page) => {
  await page.goto(url("day.html", "#/?runs=all"));
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
  for (const tab of ["time", "stages", "flame", "source", "compare"]) {
    await page.goto(url("day.html", `#/query/0-0/${tab}`));
    await page.waitForTimeout(100);
  }
  // Markup and control characters are shown as text.
  const odd = '</script><img src=x onerror="window.broken=1"><script>window.broken=1</script>';
  await page.goto(url("day.html", "#/query/0-1/plan"));
  const operator = page.locator("tr[data-node]", { hasText: odd });
  await operator.waitFor();
  const heading = await page.locator("h1").innerText();
  for (const part of ["select '<!--', \"]]>\", '\\u{202e}', '${x}' --", "&amp;", "\\u{9b}2J", "\\u{2066}"]) {
    assert.ok(heading.includes(part), `${part}: ${heading}`);
  }
  await operator.focus();
  await page.keyboard.press("Enter");
  assert.equal(await page.locator("tr.more pre").innerText(), odd);
  const shown = [await page.locator("main").innerText()];
  // Names of hosts.
  await page.goto(url("day.html", "#/query/0-4/skew?stage=13"));
  const slow = page.getByRole("table", { name: "Slow tasks" }).locator("tbody tr").first();
  await slow.waitFor();
  assert.ok((await slow.innerText()).includes('executor 1 on worker-1<img src=x onerror="window.broken=1">\\u{2028}'));
  shown.push(await page.locator("main").innerText());
  await page.goto(url("day.html", "#/contention"));
  await page.waitForSelector("table.blame tbody tr");
  shown.push(await page.locator("main").innerText());
  for (const text of shown) assert.doesNotMatch(text, /[\u0080-\u009f\u2028-\u202e\u2066-\u2069]/);
  // Contents of records, and names of methods.
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

onPage("another view begins at its top with the focus in it, and back leads to where it was left", async (page) => {
  await page.goto(url("day.html", "#/?runs=all"));
  await page.waitForSelector("table.list tbody tr");
  await page.evaluate(() => scrollBy(0, 400));
  const left = await page.evaluate(async () => {
    for (let frames = 0; frames < 3; frames++) await new Promise(requestAnimationFrame);
    return scrollY;
  });
  assert.ok(left > 200);
  await page
    .locator("[data-row]")
    .nth(40)
    .evaluate((row) => row.click());
  await page.waitForSelector("table.plan tbody tr");
  assert.equal(await page.evaluate(() => scrollY), 0);
  assert.match(await page.title(), /^Query \d+ - unfuse: /);
  assert.equal(await page.evaluate(() => document.activeElement?.tagName), "MAIN");
  await page.goBack();
  await page.waitForSelector("table.list tbody tr");
  await page.waitForFunction((left) => Math.abs(scrollY - left) < 5, left);
});
