// Starts the system's Chromium, headless, and collects what goes wrong in a page.
import { chromium } from "playwright-core";

export const launch = () =>
  chromium.launch({
    executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
    args: ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"],
  });

/** A page in its own context, and the list of its warnings, exceptions, dialogs and network requests. */
export async function watched(browser, options = {}) {
  const context = await browser.newContext({ viewport: { width: 1440, height: 900 }, ...options });
  const page = await context.newPage();
  const wrong = [];
  page.on("console", (message) => {
    if (["error", "warning"].includes(message.type())) wrong.push(`console: ${message.text()}`);
  });
  page.on("pageerror", (error) => wrong.push(`thrown: ${error}`));
  page.on("request", (request) => {
    if (!request.url().startsWith("file:")) wrong.push(`request: ${request.url()}`);
  });
  page.on("dialog", (dialog) => {
    wrong.push(`dialog: ${dialog.message()}`);
    dialog.dismiss();
  });
  return { page, wrong, close: () => context.close() };
}
