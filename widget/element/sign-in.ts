/** The way in for visitors whom the agent has to know: a card below the greeting. Loaded when somebody is signed out. */

import "../i18n/add-part-texts.ts";
import { html, type TemplateResult } from "lit";
import type { Strings } from "../i18n/strings.ts";
import { fireEvent } from "./events.ts";

interface SignIn {
  /** Where people sign in; absent where the page itself does that. */
  readonly href: string | undefined;
  readonly label: string | undefined;
}

export function renderSignIn(host: HTMLElement, { href, label }: SignIn, strings: Strings): TemplateResult {
  const text = label ?? strings.signInNow;
  const press = () => fireEvent(host, "agent-chat-login-required", {});
  return html`
    <div part="sign-in" class="sign-in">
      <p dir="auto">${strings.signInNeeded}</p>
      ${
        // A frame in another site's page is no place for a password.
        href
          ? html`<a part="sign-in-button" class="small-button filled" href=${href} target="_top" @click=${press}>${text}</a>`
          : html`<button type="button" part="sign-in-button" class="small-button filled" @click=${press}>${text}</button>`
      }
    </div>
  `;
}
