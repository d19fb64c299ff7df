/** A page in a browser, with a user's views and actions: one suite for all engines. */

import assert from "node:assert/strict";
import { after, type TestContext, test } from "node:test";
import { type Driver, until } from "./driver.ts";
import { firefoxPath, launchFirefox } from "./firefox.ts";
import { launchWebkit, webkitPath } from "./webkit.ts";

const ENGINES = {
  firefox: { path: firefoxPath, launch: launchFirefox, needs: "firefox-esr, or one that FIREFOX_PATH names" },
  webkit: { path: webkitPath, launch: launchWebkit, needs: "webkit2gtk-driver, xvfb and xdotool" },
};

/** The engines named by the variable ENGINES; default: all. */
const named = (process.env.ENGINES ?? "firefox webkit").split(" ") as (keyof typeof ENGINES)[];

const browsers = new Map<string, Driver>();
for (const name of named) {
  const { path, launch, needs } = ENGINES[name];
  if (path === undefined) throw new Error(`There is no ${name} here. Install ${needs}, or leave it out of ENGINES.`);
  const browser = await launch(path);
  browsers.set(name, browser);
  after(() => browser.close());
}

/** A test for each engine. It fails if the page reports errors. */
export function engineTest(name: string, run: (page: Page, t: TestContext) => Promise<void>): void {
  for (const [engine, driver] of browsers) {
    test(`${name} (${engine})`, async (t) => {
      driver.complaints.length = 0;
      await driver.resize(1200, 800);
      const page = new Page(driver);
      try {
        await run(page, t);
        assert.deepEqual(await page.complaints(), []);
      } finally {
        await driver.send("ReleaseActions");
        await driver.send("Navigate", { url: "about:blank" });
      }
    });
  }
}

/** An element of the page. As an argument of a function that runs in the page, it becomes the element itself. */
export interface Handle {
  readonly "element-6066-11e4-a52e-4f735466cecf": string;
}

/** Keys by their names for `press`. Other keys are characters. */
const KEYS: Readonly<Record<string, string>> = {
  ArrowUp: "\uE013",
  Shift: "\uE008",
  Alt: "\uE00A",
  Control: "\uE009",
  Enter: "\uE007",
  Escape: "\uE00C",
  Tab: "\uE004",
  Delete: "\uE017",
  F2: "\uE032",
};

declare global {
  /** For functions that run in the page: all matches of a selector, through shadow roots. */
  function findAll(selector: string): HTMLElement[];
  /** For functions that run in the page. */
  function isShown(element: Element): boolean;
}

/** The compiled tests call `__name`. */
const IN_PAGE = `
  const __name = (it) => it;
  const isShown = (element) =>
    element.checkVisibility({ visibilityProperty: true }) && element.getBoundingClientRect().height > 0;
  const findAll = (selector) => {
    const roots = [document];
    for (const root of roots) {
      for (const { shadowRoot } of root.querySelectorAll("*")) if (shadowRoot) roots.push(shadowRoot);
    }
    return roots.flatMap((root) => [...root.querySelectorAll(selector)]);
  };
`;

export const FIELD = "textarea[part=input]";

export class Page {
  readonly driver: Driver;

  constructor(driver: Driver) {
    this.driver = driver;
  }

  /** Runs a function in the page, which can only use its arguments, `findAll` and `isShown`. */
  async run<Result>(script: (...args: never[]) => Result, ...args: unknown[]): Promise<Result> {
    const source = `${IN_PAGE} return (${script})(...arguments);`;
    return (await this.driver.send("ExecuteScript", { script: source, args })) as Result;
  }

  /** Runs a function in the page until its result is truthy. */
  until<Result>(script: (...args: never[]) => Result, ...args: unknown[]): Promise<NonNullable<Result>> {
    return until(String(script), () => this.run(script, ...args));
  }

  async open(url: string): Promise<void> {
    await this.driver.send("Navigate", { url });
    await this.#listen();
  }

  /** Opens an address in a second window, to which commands go until `switchTab`; WebKit never shows a second tab. */
  async openTab(url: string): Promise<{ switchTab(): Promise<void>; closeOther(): Promise<void> }> {
    const { driver } = this;
    const tabs = [await driver.send("GetWindowHandle")];
    const { handle } = (await driver.send("NewWindow", { type: "window" })) as { handle: string };
    tabs.unshift(handle);
    await driver.send("SwitchToWindow", { handle });
    await this.open(url);
    const switchTab = async () => {
      await driver.send("SwitchToWindow", { handle: tabs.reverse()[0] });
    };
    const closeOther = async () => {
      await switchTab();
      await driver.send("CloseWindow");
      await switchTab();
    };
    return { switchTab, closeOther };
  }

  async reload(): Promise<void> {
    await this.driver.send("Refresh");
    await this.#listen();
  }

  async #listen(): Promise<void> {
    await this.run(() => {
      const complaints: string[] = [];
      Object.assign(window, { complaints });
      addEventListener("error", ({ message }) => {
        // Not an error: sizes that change again within a frame are reported in the next one.
        if (!message.startsWith("ResizeObserver loop")) complaints.push(message);
      });
      addEventListener("unhandledrejection", ({ reason }) => complaints.push(String(reason)));
      addEventListener("securitypolicyviolation", ({ violatedDirective }) => complaints.push(violatedDirective));
      console.error = (...values) => complaints.push(values.join(" "));
    });
  }

  /** Errors of the page since it was loaded; in Firefox also during loading. */
  async complaints(): Promise<string[]> {
    const own = await this.run(() => (window as unknown as { complaints?: string[] }).complaints ?? []);
    return [...own, ...this.driver.complaints];
  }

  /** Waits until an element is shown that matches the selector and contains this text. */
  shown(selector: string, text = ""): Promise<Handle> {
    return until(`${selector} ${text}`, () =>
      this.run(
        (wanted: string, inside: string) =>
          findAll(wanted).find((element) => isShown(element) && element.textContent.includes(inside)) as unknown,
        selector,
        text,
      ),
    ) as Promise<Handle>;
  }

  async gone(selector: string): Promise<void> {
    await this.until((unwanted: string) => !findAll(unwanted).some(isShown), selector);
  }

  button(name: string): Promise<Handle> {
    return this.shown(`button[aria-label="${name}"]`);
  }

  /** Clicks the centre of an element with the mouse, once the element no longer moves. */
  async click(target: Handle): Promise<void> {
    const middle = () =>
      this.run((element: Element) => {
        element.scrollIntoView({ block: "nearest" });
        const { left, top, width, height } = element.getBoundingClientRect();
        return [Math.round(left + width / 2), Math.round(top + height / 2)];
      }, target);
    const places: string[] = [];
    const [x, y] = await until("a place where it stays", async () => {
      const place = await middle();
      places.push(String(place));
      return places.length > 3 && new Set(places.slice(-4)).size === 1 ? place : undefined;
    });
    const actions = [
      { type: "pointerMove", x, y, duration: 0, origin: "viewport" },
      { type: "pointerDown", button: 0 },
      { type: "pointerUp", button: 0 },
    ];
    const mouse = { type: "pointer", id: "mouse", parameters: { pointerType: "mouse" }, actions };
    await this.driver.send("PerformActions", { actions: [mouse] });
  }

  /** The role of an element in the accessibility tree. */
  role(target: Handle): Promise<unknown> {
    return this.driver.send("GetComputedRole", { id: Object.values(target)[0] });
  }

  async focus(target: Handle): Promise<void> {
    await this.run((element: HTMLElement) => element.focus(), target);
  }

  /** Presses a key, or several at once, such as `Shift+Enter`. */
  press(keys: string): Promise<void> {
    const values = keys.split("+").map((key) => KEYS[key] ?? key);
    return this.#keyboard([
      ...values.map((value) => ({ type: "keyDown", value })),
      ...values.toReversed().map((value) => ({ type: "keyUp", value })),
    ]);
  }

  type(text: string): Promise<void> {
    return this.#keyboard([...text].flatMap((value) => ["keyDown", "keyUp"].map((type) => ({ type, value }))));
  }

  async #keyboard(actions: readonly object[]): Promise<void> {
    await this.driver.send("PerformActions", { actions: [{ type: "key", id: "keyboard", actions }] });
  }

  /** Types a message and sends it. */
  async send(text: string): Promise<void> {
    await this.click(await this.shown(FIELD));
    await this.type(text);
    await this.press("Enter");
  }

  /** Waits until the element with this name has the focus, which returns a moment after something has closed. */
  async hasFocus(name: string): Promise<void> {
    await until(`the focus on ${name}`, async () => (await this.focused()) === name);
  }

  /** The accessible name of the focused element, through shadow roots. */
  focused(): Promise<string | undefined> {
    return this.run(() => {
      let element = document.activeElement;
      while (element?.shadowRoot?.activeElement) element = element.shadowRoot.activeElement;
      return element?.getAttribute("aria-label") ?? element?.textContent.trim();
    });
  }
}
