/** `/launcher.js`: the button alone. It shares styles and a few modules with `/widget.js`, and neither lit nor texts. */

import { readFileSync } from "node:fs";
import { LOCALES } from "./chunks.mjs";
import { compactTemplates } from "./compact-templates.mjs";

/** Most that it may weigh on the wire: all that a page loads before its visitors open the chat. */
export const LAUNCHER_BUDGET_GZIP_BYTES = 6_000;

/** Of lit it needs the tag of style sheets, of which it reads the text. */
const cssOnly = {
  name: "css-only",
  setup({ onResolve, onLoad }) {
    onResolve({ filter: /^lit$/ }, () => ({ path: "lit", namespace: "css-only" }));
    onLoad({ filter: /.*/, namespace: "css-only" }, () => ({
      contents: "export const css = ([cssText]) => ({ cssText });",
    }));
  },
};

/** What the button is called without a label, in each language. */
function openChat() {
  const files = LOCALES.map((language) => [language, `widget/chunks/locale-${language}.ts`]);
  return Object.fromEntries(
    [["en", "widget/texts/launcher.ts"], ...files].map(([language, path]) => {
      const [, text] = /^ {2}openChat: "(.*)",$/m.exec(readFileSync(path, "utf8")) ?? [];
      if (text === undefined) throw new Error(`${path} has no openChat in one line`);
      return [language, text];
    }),
  );
}

function attributesOf({ modules }) {
  const elements = modules.flatMap(({ declarations }) => declarations);
  const { attributes } = elements.find(({ tagName }) => tagName === "agent-chat-launcher");
  return attributes.map(({ name }) => name).filter((name) => !/^(lang|dir)$/.test(name));
}

/** `browser` are the options of `/widget.js`, as far as both have them. */
export function launcherScript(browser, manifest, watching) {
  return {
    ...browser,
    entryPoints: ["widget/launcher-script.ts"],
    outfile: "dist/public/launcher.js",
    plugins: [cssOnly, ...(watching ? [] : [compactTemplates])],
    define: {
      PARLEY_OPEN_CHAT: JSON.stringify(openChat()),
      PARLEY_LAUNCHER_ATTRIBUTES: JSON.stringify(attributesOf(manifest)),
    },
  };
}
