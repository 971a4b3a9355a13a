// The main answers of a report: verdict, queries by name, graph and hot lines of a plan, orders of the flame graph.
import assert from "node:assert/strict";
import { focused, hash, onPage, texts, url } from "./reports.mjs";

/** The first number of a text. */
const number = (text) => parseFloat(text.match(/[\d.]+/)?.[0] ?? "NaN");

onPage("the verdict is on top: parts that add up, and sentences that lead to their evidence", async (page) => {
  await page.goto(url("canonical.html"));
  await page.waitForSelector(".verdict");
  assert.equal(await page.locator("h1").innerText(), "Where the time went");
  const verdict = await page.locator(".verdict").boundingBox();
  const list = await page.locator("table.list").boundingBox();
  assert.ok(verdict.y < list.y);
  // Legend and bar show the same parts, which add up to 100%.
  const shares = await texts(page, ".partlist .muted");
  assert.ok(Math.abs(shares.map(number).reduce((a, b) => a + b) - 100) < 0.6, `${shares}`);
  const bar = await page.locator(".partbar").evaluate((bar) => {
    const all = bar.getBoundingClientRect().width;
    return [...bar.children].map((part) => (100 * part.getBoundingClientRect().width) / all);
  });
  assert.equal(bar.length, shares.length);
  shares.forEach((share, at) => assert.ok(Math.abs(number(share) - bar[at]) < 1, `${share}: ${bar[at]}`));
  assert.match(await page.locator(".partlist").innerText(), /CPU time of operators/);
  // Each link to evidence leads to a page that exists.
  const links = await page.locator(".verdict p a").evaluateAll((links) => links.map((link) => link.hash));
  assert.ok(links.length > 0);
  for (const link of links) {
    await page.goto(url("canonical.html", link));
    await page.waitForSelector("main h1");
    assert.equal(await page.getByText("This report has no such").count(), 0, link);
    const node = new URLSearchParams(link.split("?")[1]).get("node");
    if (node !== null) await page.waitForSelector("tr.more");
  }
});

onPage(
  "a command of the verdict is copied",
  async (page) => {
    await page.goto(url("canonical.html"));
    const command = page.locator(".verdict .command").first();
    await command.getByRole("button").press("Enter");
    await command.getByText("copied").first().waitFor();
    const copied = await page.evaluate(() => navigator.clipboard.readText());
    assert.match(copied, /^unfuse /);
    assert.equal(copied, await command.locator("code").innerText());
  },
  { permissions: ["clipboard-read", "clipboard-write"] },
);

onPage("runs of a query are one row; the toggle and a link show them", async (page) => {
  await page.goto(url("canonical.html"));
  await page.waitForSelector("table.list tbody tr");
  const names = await texts(page, "table.list tbody tr .text");
  assert.equal(new Set(names).size, names.length, `${names}`);
  const first = page.locator("table.list tbody tr").first();
  assert.match(await first.innerText(), /25\.6 s\s+98\.6%\s+5 runs\s+5\.11 s\s*4\.66 s to 6\.01 s/);
  await page.getByLabel("show all runs").press("Space");
  await page.waitForFunction(() => document.querySelectorAll("table.list tbody tr").length === 8);
  assert.match(await hash(page), /runs=all/);
  await page.goBack();
  await first.getByRole("link", { name: "5 runs" }).press("Enter");
  await page.waitForSelector("h1:has-text('Runs of')");
  assert.equal(await page.locator("table.list tbody tr").count(), 5);
  // The link opens the next run in the same tab of the report.
  await page.goto(url("canonical.html", "#/query/0-3/stages"));
  await page.getByRole("link", { name: "next run" }).press("Enter");
  await page.waitForFunction(() => location.hash === "#/query/0-4/stages");
  await page.waitForSelector("text=Run 3 of 5");
});

onPage("nodes that only hand rows on are behind a toggle, and nothing is lost", async (page) => {
  await page.goto(url("canonical.html", "#/query/0-3/plan"));
  await page.waitForSelector("table.plan tbody tr");
  const sum = async () =>
    (await texts(page, "table.plan tbody tr:not(.more) td:nth-child(4)"))
      .map((text) => parseFloat(text) || 0)
      .reduce((a, b) => a + b);
  const few = await page.locator("tr[data-node]").count();
  assert.equal(await page.locator("tr[data-node]", { hasText: "InputAdapter" }).count(), 0);
  assert.ok(Math.abs((await sum()) - 100) < 1.5);
  await page.getByLabel(/show 14 nodes/).press("Space");
  await page.waitForFunction((few) => document.querySelectorAll("tr[data-node]").length === few + 14, few);
  assert.ok((await page.locator("tr[data-node]", { hasText: "InputAdapter" }).count()) > 0);
  assert.ok(Math.abs((await sum()) - 100) < 1.5);
});

onPage("an operator has its hot lines and its CPU time per row beside it", async (page) => {
  await page.goto(url("canonical.html", "#/query/0-3/plan"));
  const aggregate = page.locator("tr[data-node]", { hasText: "partial_avg" });
  await aggregate.waitFor();
  // 3.60 s for 20,000 rows.
  assert.match(await aggregate.innerText(), /180 µs/);
  const line = aggregate.locator(".hotline a").first();
  assert.match(await line.innerText(), /generated\.java:254/);
  await line.click();
  await page.waitForSelector("table.code tr:focus");
  assert.match(await page.locator("table.code tr:focus").innerText(), /254/);
  assert.match(await hash(page), /source\?source=.*&line=254/);
  await page.goto(url("canonical.html", "#/query/0-3/plan?node=10"));
  assert.match(
    await page.locator("tr.more").innerText(),
    /CPU time per row: 180 µs \(\d+ µs to \d+ µs\) for each row out.*95% certainty/s,
  );
});

onPage("the plan's graph: rows on its edges, by keyboard to every node", async (page) => {
  await page.goto(url("canonical.html", "#/query/0-3/plan"));
  await page.getByRole("link", { name: "Graph" }).press("Enter");
  await page.waitForSelector(".graph");
  const boxes = page.locator(".graph .box");
  const count = await boxes.count();
  assert.ok(count > 5);
  assert.equal(await page.locator(".graph path").count(), count - 1);
  assert.ok((await page.locator(".graph text").allTextContents()).includes("5,240,041 rows"));
  // No box overlaps another one.
  const places = await boxes.evaluateAll((boxes) => boxes.map((box) => box.getBoundingClientRect().toJSON()));
  places.forEach((a, at) =>
    places.slice(at + 1).forEach((b) => {
      const beside = a.right <= b.left || b.right <= a.left || a.bottom <= b.top || b.bottom <= a.top;
      assert.ok(beside, JSON.stringify([a, b]));
    }),
  );
  // The root is at the bottom; arrow up moves against the flow of rows.
  await page.locator(".box[tabindex='0']").focus();
  const seen = [await focused(page)];
  for (let at = 0; at < 3; at++) {
    await page.keyboard.press("ArrowUp");
    seen.push(await focused(page));
  }
  assert.match(seen[0], /OverwriteByExpression/);
  assert.match(seen[3], /^HashAggregate.*partial_avg/);
  await page.keyboard.press("Enter");
  await page.waitForSelector(".slice pre");
  assert.match(await page.locator(".slice pre").innerText(), /partial_avg\(l_extendedprice#5\)/);
  assert.match(await hash(page), /node=\d+/);
});

onPage("the flame graph is by plan or by code, with colours by kind and seconds", async (page) => {
  await page.goto(url("canonical.html", "#/query/0-3/flame"));
  await page.waitForSelector(".frame");
  assert.match(await page.locator(".seconds").innerText(), /^0.*5\.14 s$/s);
  // An operator occurs only once on a path.
  const labels = await page
    .locator(".frame")
    .evaluateAll((frames) => frames.map((frame) => [frame.getAttribute("aria-level"), frame.ariaLabel]));
  assert.equal(labels.filter(([, label]) => label.includes("partial_avg")).length, 1, `${labels}`);
  const legend = await texts(page, ".tools .legend > span");
  for (const kind of ["scan", "join", "aggregate", "exchange"])
    assert.ok(
      legend.some((text) => text.trim() === kind),
      `${kind}: ${legend}`,
    );
  const colour = (locator) => locator.evaluate((element) => getComputedStyle(element).backgroundColor);
  const join = page.locator(".tools .legend > span", { hasText: "join" }).locator(".key");
  assert.equal(await colour(join), await colour(page.locator(".frame", { hasText: "BroadcastHashJoin" }).first()));
  await page.getByRole("link", { name: "By code" }).press("Enter");
  await page.waitForSelector(".frame.k-stage");
  assert.match(await hash(page), /order=code/);
});

onPage("pages without findings say why", async (page) => {
  await page.goto(url("canonical.html", "#/contention"));
  assert.match(await page.locator("main .lead").innerText(), /no record of the resources/);
  await page.goto(url("canonical.html", "#/skew"));
  assert.match(await page.locator("main .lead").innerText(), /^None of \d+ stages/);
});

onPage("a note is on a page once, and rules that say the same are one", async (page) => {
  await page.goto(url("day.html", "#/contention"));
  await page.waitForSelector("table.blame tbody tr");
  const notes = (await texts(page, "p")).filter((text) => text.startsWith("Note:"));
  assert.ok(notes.length > 1);
  assert.equal(new Set(notes).size, notes.length, `${notes}`);
  const rules = await texts(page, ".advice > li");
  const alike = rules.map((rule) => rule.replace(/^\S+( to \S+)? /, "").replace(/query \d+/g, "query"));
  assert.equal(new Set(alike).size, alike.length, `${alike}`);
});

onPage("suggestions below the verdict are in the view of all, with their evidence", async (page) => {
  await page.goto(url("day.html", "#/advice"));
  assert.equal(await page.locator("main h1").innerText(), "What would help");
  const all = await texts(page, ".suggestions h2");
  for (const parts of await texts(page, ".suggestions dl")) assert.match(parts, /Why[^]+What to do[^]+Risk/);
  await page.goto(url("day.html"));
  await page.waitForSelector("table.list");
  const first = await texts(page, ".a-advice li");
  assert.equal(first.length, Math.min(3, all.length));
  first.forEach((text, at) => assert.ok(text.startsWith(all[at]), `${text}: ${all[at]}`));
});

/** Seconds of a text such as `3.53 s`, `−58 ms`, `2 m 05 s`. */
const secondsOf = (text) => {
  const [, sign, rest] = /^([+−]?)(.*)$/.exec(text.trim());
  const units = { h: 3600, m: 60, s: 1, ms: 0.001 };
  const parts = [...rest.matchAll(/([\d.]+) (h|ms|m|s)\b/g)].map(([, n, unit]) => Number(n) * units[unit]);
  return (sign === "−" ? -1 : 1) * parts.reduce((a, b) => a + b, 0);
};

onPage("the wall time of a query: parts that add up, and lead to where more is", async (page) => {
  await page.goto(url("canonical.html"));
  const first = (await page.locator("table.list [data-row]").first().getAttribute("href")) ?? "";
  await page.goto(url("canonical.html", first.replace("/plan", "/time")));
  const parts = page.getByRole("table", { name: "Parts of the wall time" });
  await parts.waitFor();
  const amounts = await parts.locator("tbody .strong").allInnerTexts();
  const whole = secondsOf(await parts.locator("tfoot .strong").innerText());
  const sum = amounts.map(secondsOf).reduce((a, b) => a + b);
  assert.ok(whole > 0 && Math.abs(sum - whole) < 0.01 * whole + 0.001 * amounts.length, `${amounts}: ${whole}`);
  // Each bar begins where the one above ends.
  const bars = await parts.locator(".track span").evaluateAll((bars) => bars.map((bar) => bar.getBoundingClientRect()));
  bars.slice(1).forEach((bar, at) => assert.ok(Math.abs(bar.left - bars[at].right) < 3, `${at}`));
  await parts
    .getByRole("link", { name: /^operator/ })
    .first()
    .click();
  await page.waitForSelector("tr.more");
  assert.match(await hash(page), /plan\?node=\d+/);
});

onPage("the difference to an earlier profile, from the time before to that now", async (page) => {
  await page.goto(url("day.html", "#/query/0-5/time"));
  const parts = page.getByRole("table", { name: "Parts of the difference" });
  await parts.waitFor();
  const [before, ...amounts] = (await parts.locator("tbody .strong").allInnerTexts()).map(secondsOf);
  const now = secondsOf(await parts.locator("tfoot .strong").innerText());
  const sum = amounts.reduce((a, b) => a + b, before);
  assert.ok(Math.abs(sum - now) < 0.01 * (now + before) + 0.001 * amounts.length, `${before} ${amounts}: ${now}`);
  assert.match(await page.locator(".walltime .crumbs").first().innerText(), / now, .* in .*old/);
});
