// Gives Node a DOM. It must be registered before Lit is imported, so this is the first import of each widget test.
import { after } from "node:test";
import { GlobalRegistrator } from "@happy-dom/global-registrator";
import type { Window as HappyWindow } from "happy-dom";

GlobalRegistrator.register({ url: "https://chat.example/" });

// Simulates closing the tab: cancels all that the page still waits for, such as a missing part of the script.
after(() => (window as unknown as HappyWindow).happyDOM.abort());

const climb = activeElementOf(ShadowRoot.prototype);
Object.defineProperty(ShadowRoot.prototype, "activeElement", {
  get(this: ShadowRoot): Element | null {
    try {
      return climb.call(this);
    } catch (error) {
      // happy-dom throws if the focus is in another shadow root.
      if (error instanceof TypeError) return null;
      throw error;
    }
  },
});

function activeElementOf(prototype: object): (this: ShadowRoot) => Element | null {
  const own = Object.getOwnPropertyDescriptor(prototype, "activeElement")?.get;
  return own ?? activeElementOf(Object.getPrototypeOf(prototype));
}
