/** Asks for the key: the form is a chunk, since most chats need none. */

import { html, type TemplateResult } from "lit";
import type { KeyPrompt } from "./api-key.ts";
import type { ChatClient } from "./chat-client.ts";
import { LateChunk, type LateHost } from "./late-chunk.ts";
import { strings } from "./strings.ts";
import { unreachableView } from "./views/empty.ts";

export class KeyAsker {
  readonly #form: LateChunk<"key-form">;

  constructor(host: LateHost) {
    this.#form = new LateChunk(host, "key-form");
  }

  render(client: ChatClient, prompt: KeyPrompt): TemplateResult {
    const chunk = this.#form.get();
    if (!chunk) return this.#form.failed ? unreachableView(() => void this.#form.load()) : html``;
    return chunk.keyFormView({
      name: client.info?.name ?? strings.fallbackAgent,
      prompt,
      checking: client.checkingKey,
      waiting: client.session.status === "locked",
      onSubmit: (key) => void client.submitKey(key),
    });
  }
}
