/** Explains on the console why a page cannot use a server, and what the site's owner can do. Loaded only then. */

import type { AgentInfo } from "../../server/protocol/chat.ts";
import { checkOverSocket } from "../transport/check.ts";
import type { Endpoint } from "../transport/transport.ts";
import { fetchAgentInfo, NotParleyError } from "./server.ts";

export class SiteDiagnosis {
  readonly #server: URL;
  readonly #endpoint: Endpoint;
  /** The hints that are on the console already. */
  readonly #hints = new Set<string>();

  constructor(endpoint: Endpoint) {
    this.#server = endpoint.server;
    this.#endpoint = endpoint;
  }

  /** Tells the site's owner what to do, once. */
  hint(text: string): void {
    if (!this.#hints.has(text)) console.warn(`<agent-chat>: ${text}`);
    this.#hints.add(text);
  }

  /** The page has no key. */
  lacksKey(): void {
    this.hint(
      `the Parley server at ${this.#server.href} needs a key, and this page gives none. Set data-key="YOUR_WIDGET_KEY" on the script tag, or api-key on an <agent-chat> of the page.`,
    );
  }

  /** The page's key is refused. */
  hasWrongKey(): void {
    this.hint("the server does not accept the key of the attribute api-key (of a script: data-key).");
  }

  /**
   * Why the server has not described its agent; or the description, if it has arrived by now. A server that was
   * unreachable before is not asked again.
   */
  async explain(
    error: unknown,
    wasUnreachable: boolean,
    signal: AbortSignal,
  ): Promise<AgentInfo | "unreachable" | "forbidden"> {
    const { href, origin } = this.#server;
    // `null` for a file and a sandbox, whatever their address.
    const page = window.origin;
    if (error instanceof NotParleyError) {
      const gave = error.message === "0" ? "a redirect" : error.message;
      this.hint(`${href} is not a Parley server (GET /api/info gave ${gave}). Check the attribute server.`);
    } else if (error instanceof TypeError && origin !== page && !wasUnreachable) {
      // Scripts cannot see a response that CORS blocks. A WebSocket of a Parley server says why it refuses the page.
      const refusal = await checkOverSocket(this.#endpoint).catch(() => undefined);
      if (refusal && /^(unauthorized|forbidden)$/.test(refusal.code)) {
        // Without a key every page is refused, even if the network had only failed for a moment.
        const info = await fetchAgentInfo(this.#server, signal).catch(() => undefined);
        if (info) return info;
        this.hint(
          page === "null"
            ? "PARLEY_ALLOWED_ORIGINS cannot name a page that was opened from a file or is in a sandbox. Open it from a web server, for example with: npx serve"
            : `the Parley server at ${href} does not allow pages of ${page}. Add ${page} to the list PARLEY_ALLOWED_ORIGINS of its settings, and restart it.`,
        );
        return "forbidden";
      }
      // It fails only if the server is not there.
      fetch(new URL("api/info", this.#server), { mode: "no-cors", credentials: "omit", signal }).then(
        () =>
          this.hint(
            `${href} answers, but pages of ${page} cannot read it. Check the attribute server, and PARLEY_ALLOWED_ORIGINS of a Parley server there.`,
          ),
        () => undefined,
      );
    }
    // Down, blocked or not a chat server: for the user it is the same, with one way out.
    return "unreachable";
  }
}
