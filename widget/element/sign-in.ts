/**
 * The card to sign in, and the name of a signed-in user with the button to sign out. Loaded when the user is signed out
 * or has a name.
 */

import "../i18n/add-part-texts.ts";
import { html, type TemplateResult } from "lit";
import type { Strings } from "../i18n/strings.ts";
import { fireEvent } from "./events.ts";

export interface Way {
  /** URL to sign in or out; absent if the page itself does that. */
  readonly href: string | undefined;
  readonly label: string | undefined;
}

interface Host extends HTMLElement {
  readonly page: boolean;
  signOut(): Promise<void>;
}

/** A card below the greeting. */
export function renderSignIn(host: Host, { href, label }: Way, strings: Strings): TemplateResult {
  // On the server's own page no site listens to the event: users have to sign in elsewhere.
  const isElsewhere = host.page && !href;
  const text = label ?? strings.signInNow;
  const press = () => fireEvent(host, "agent-chat-login-required", {});
  return html`
    <div part="sign-in" class="sign-in" role="group" aria-labelledby="sign-in">
      <p id="sign-in" dir="auto">${isElsewhere ? strings.signInElsewhere : strings.signInNeeded}</p>
      ${
        isElsewhere
          ? html`<button type="button" part="sign-in-button" class="small-button filled way-in" @click=${() => location.reload()}>${strings.reload}</button>`
          : href
            ? // `_top`: a frame in another site's page is no place for a password.
              html`<a part="sign-in-button" class="small-button filled way-in" href=${href} target="_top" dir="auto" @click=${press}>${text}</a>`
            : html`<button type="button" part="sign-in-button" class="small-button filled way-in" dir="auto" @click=${press}>${text}</button>`
      }
    </div>
  `;
}

/** The line with the user's name, below everything else. */
export function renderUser(host: Host, name: string, out: Way | undefined, strings: Strings): TemplateResult {
  const leave = async () => {
    await host.signOut();
    fireEvent(host, "agent-chat-sign-out", {});
    if (out?.href) window.open(out.href, "_top");
  };
  return html`
    <p part="signed-in" class="signed-in">
      <span>${strings.signedInAs(`\u2068${name}\u2069`)}</span>
      ${
        out &&
        html`<button type="button" part="sign-out" dir="auto" @click=${leave}>${out.label ?? strings.signOutNow}</button>`
      }
    </p>
  `;
}
