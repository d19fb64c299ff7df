import { html, nothing, type TemplateResult } from "lit";
import type { KeyPrompt } from "../api-key.ts";
import { strings } from "../strings.ts";
import * as icons from "./icons.ts";
import * as stepIcons from "./step-icons.ts";

export interface KeyFormModel {
  readonly name: string;
  readonly prompt: KeyPrompt;
  readonly checking: boolean;
  /** Whether a message waits for the key. */
  readonly waiting: boolean;
  readonly onSubmit: (key: string) => void;
}

const problemOf = (prompt: KeyPrompt): string =>
  ({ required: "", refused: strings.keyRefused, forbidden: strings.keyForbidden })[prompt];

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

/** Asks for the key, says why, and says what was wrong with the last one. */
export function keyFormView(model: KeyFormModel): TemplateResult {
  const problem = model.checking ? "" : problemOf(model.prompt);
  const submit = (event: SubmitEvent) => {
    event.preventDefault();
    if (!(event.currentTarget instanceof HTMLFormElement)) return;
    const key = new FormData(event.currentTarget).get("key");
    if (typeof key === "string" && key.trim() !== "") model.onSubmit(key.trim());
  };
  return html`
    <form part="key-form" class="key-form" @submit=${submit}>
      <span class="mark">${icons.key}</span>
      <h2>${strings.keyTitle}</h2>
      <p id="key-why">${strings.keyWhy(model.name, canKeep())}</p>
      <label for="key">${strings.keyLabel}</label>
      <input
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
      <p id="key-problem" class="problem" role="alert">${problem}</p>
      ${model.waiting && problem === "" ? html`<p class="hint">${strings.keyWaiting}</p>` : nothing}
      <button type="submit" class="primary" ?disabled=${model.checking}>
        ${model.checking ? html`${stepIcons.spinner}${strings.keyChecking}` : strings.keySubmit}
      </button>
    </form>
  `;
}
