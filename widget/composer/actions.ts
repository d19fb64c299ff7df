/** The registry of composer actions: buttons beside the text field. Dictation or a menu of models is one row each. */

import type { TemplateResult } from "lit";
import type { ComposerAction, ComposerPort } from "../ui/chat-part.ts";
import { iconButton } from "../ui/controls.ts";
import { icon } from "../ui/icons.ts";

/** The page's own actions that are available. */
export function renderActions(actions: readonly ComposerAction[], composer: ComposerPort): readonly TemplateResult[] {
  return actions
    .filter((action) => isAvailable(action, composer))
    .map((action) =>
      iconButton(action.name, action.label, icon(action.icon), () => void run(action, composer), {
        className: "icon-button round action",
      }),
    );
}

function isAvailable(action: ComposerAction, composer: ComposerPort): boolean {
  try {
    return action.isAvailable?.(composer) ?? true;
  } catch (error) {
    warn(action, error);
    return false;
  }
}

async function run(action: ComposerAction, composer: ComposerPort): Promise<void> {
  try {
    await action.run(composer);
  } catch (error) {
    warn(action, error);
  }
}

function warn({ name }: ComposerAction, error: unknown): void {
  console.warn(`<agent-chat> the composer action "${name}" failed:`, error);
}
