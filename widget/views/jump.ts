import { html, nothing, type TemplateResult } from "lit";
import type { ScrollFollower } from "../scroll-follower.ts";
import { strings } from "../strings.ts";
import type { Message } from "../transcript.ts";
import * as icons from "./icons.ts";

/** Brings a reader who has left the end back to it, and says how many answers were finished meanwhile. */
export function jumpView(follower: ScrollFollower, messages: readonly Message[]): TemplateResult | typeof nothing {
  const answers = messages.filter((message) => message.role === "assistant" && message.status !== "streaming");
  const missed = follower.missed(answers.length);
  if (follower.following) return nothing;
  return html`
    <button type="button" part="jump" class="small-button jump" @click=${() => follower.jump()}>
      ${icons.down}${strings.jump}${missed > 0 ? ` · ${strings.newAnswers(missed)}` : nothing}
    </button>
  `;
}
