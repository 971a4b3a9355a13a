// Every page of a report at both widths and in both themes: axe-core finds nothing serious, nothing is wider than the
// window, and no text is cut off without an ellipsis.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { places } from "./places.mjs";
import { onPage, url } from "./reports.mjs";

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const REPORTS = { "canonical.html": 3, "day.html": 4 };

for (const colorScheme of ["light", "dark"])
  for (const width of [1280, 390])
    for (const [report, query] of Object.entries(REPORTS))
      onPage(
        `${report} can be used by everyone: ${colorScheme}, ${width} px`,
        async (page) => {
          for (const [name, place] of Object.entries(places(query))) {
            await page.goto("about:blank");
            await page.goto(url(report, place));
            await page.waitForSelector("main h1");
            await page.waitForFunction(() => !document.querySelector("main")?.textContent.includes("Unpacking"));
            await page.evaluate(axe);
            assert.deepEqual(await page.evaluate(serious), [], name);
            assert.deepEqual(await page.evaluate(tooWide), [], name);
          }
          const back = await page.evaluate(() => getComputedStyle(document.body).backgroundColor);
          assert.equal(back === "rgb(255, 255, 255)", colorScheme === "light");
        },
        { colorScheme, viewport: { width, height: 800 } },
      );

/** The serious and critical violations that axe-core finds. */
async function serious() {
  const { violations } = await globalThis.axe.run(document, { resultTypes: ["violations"] });
  return violations
    .filter(({ impact }) => impact === "serious" || impact === "critical")
    .map(({ id, nodes }) => `${id}: ${nodes[0].html.slice(0, 200)}`);
}

/** Elements that make the page scroll sideways, and texts cut off without an ellipsis. */
function tooWide() {
  const found = [];
  if (document.documentElement.scrollWidth > innerWidth) {
    const wide = [...document.querySelectorAll("body *")].filter(
      (element) => element.getBoundingClientRect().right > innerWidth + 1 && !element.closest(".scroll"),
    );
    found.push(`the page is ${document.documentElement.scrollWidth} px wide: ${wide.at(-1)?.outerHTML.slice(0, 200)}`);
  }
  for (const element of document.querySelectorAll("main *, header *")) {
    const own = [...element.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim());
    if (!own || element.closest(".sr, .scroll, .flame") || !element.checkVisibility()) continue;
    const style = getComputedStyle(element);
    const cut = element.scrollWidth > element.clientWidth + 1 && element.clientWidth > 0;
    if (cut && style.overflowX === "hidden" && style.textOverflow !== "ellipsis")
      found.push(`cut: ${element.outerHTML.slice(0, 200)}`);
  }
  return found;
}

onPage("axe-core is really asked, and what is too wide is found", async (page) => {
  await page.goto(url("canonical.html"));
  await page.waitForSelector("main h1");
  await page.evaluate(axe);
  await page.evaluate(() => {
    const wrong = document.createElement("div");
    wrong.innerHTML = `<button></button><p>${"x".repeat(4000)}</p>`;
    document.querySelector("main").append(wrong);
  });
  assert.match((await page.evaluate(serious)).join(), /button-name/);
  assert.match((await page.evaluate(tooWide)).join(), /px wide/);
});

onPage("the focus can be seen on all that can have it", async (page) => {
  for (const place of ["#/", "#/query/0-3/plan", "#/query/0-3/plan?view=graph", "#/query/0-3/flame"]) {
    await page.goto(url("canonical.html", place));
    await page.waitForSelector("main h1");
    await page.waitForFunction(() => !document.querySelector("main")?.textContent.includes("Unpacking"));
    for (let at = 0; at < 14; at++) {
      await page.keyboard.press("Tab");
      const seen = await page.evaluate(() => {
        const element = document.activeElement;
        if (element === document.body) return true;
        const { outlineStyle, outlineWidth } = getComputedStyle(element);
        return outlineStyle !== "none" && parseFloat(outlineWidth) >= 1 ? true : element.outerHTML.slice(0, 200);
      });
      assert.equal(seen, true, place);
    }
  }
});
