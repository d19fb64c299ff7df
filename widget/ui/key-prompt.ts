/** The form that asks for the key. Loaded if the server requires one. */

import { html, nothing, type TemplateResult } from "lit";
import "../i18n/add-part-texts.ts";
import { ApiKey, type KeyPrompt } from "../session/api-key.ts";
import styles from "../styles/key-prompt.css";
import { partSheets } from "../styles/part-sheets.ts";
import { ChatPart } from "./chat-part.ts";
import { icons } from "./icons.ts";
import { liveText } from "./live-text.ts";

/** Asks for the key and says why, and what was wrong with the last one. */
export class KeyPromptElement extends ChatPart {
  static override readonly sheets = partSheets(styles);
  static override properties = {
    name: { attribute: false },
    prompt: { attribute: false },
    isChecking: { attribute: false },
    isMessageWaiting: { attribute: false },
  };
  /** Name of the application that asks for the key. */
  name = "";
  /** Why the key is asked for. */
  prompt: KeyPrompt = "required";
  isChecking = false;
  /** Whether a message is sent as soon as there is a key. */
  isMessageWaiting = false;
  readonly #canKeep = !ApiKey.isFramed && canKeep();

  protected override render(): TemplateResult {
    const { strings } = this.context;
    const problem = this.#problemText();
    return html`
      <form part="key-form" class="key-form" @submit=${this.#submit}>
        <span class="mark">${icons.key}</span>
        <h2>${strings.keyTitle}</h2>
        <p id="key-why">${strings.keyReason(this.name, this.#canKeep)}</p>
        <label for="key">${strings.keyLabel}</label>
        <input
          class="field"
          id="key"
          name="key"
          type="password"
          required
          autocomplete="off"
          autocapitalize="off"
          spellcheck="false"
          aria-describedby="key-why key-problem"
          aria-invalid=${problem !== ""}
        />
        <p id="key-problem" class="problem" role="alert">${liveText(problem)}</p>
        ${this.isMessageWaiting && problem === "" ? html`<p>${strings.keyWaiting}</p>` : nothing}
        <button type="submit" class="primary filled" ?disabled=${this.isChecking}>
          ${this.isChecking ? html`${icons.spinner}${strings.keyChecking}` : strings.keySubmit}
        </button>
      </form>
    `;
  }

  #problemText(): string {
    const { keyRefused, keyForbidden } = this.context.strings;
    if (this.isChecking) return "";
    return { required: "", refused: keyRefused, forbidden: keyForbidden }[this.prompt];
  }

  readonly #submit = (event: SubmitEvent): void => {
    event.preventDefault();
    const key = new FormData(event.currentTarget as HTMLFormElement).get("key");
    if (typeof key === "string" && key.trim() !== "") this.context.actions.submitKey(key.trim());
  };
}

/** Whether the browser will keep the key: it may block storage, or have no room left. */
function canKeep(): boolean {
  try {
    localStorage.setItem("agent-chat-key", "");
    localStorage.removeItem("agent-chat-key");
    return true;
  } catch {
    return false;
  }
}
