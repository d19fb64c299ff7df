/** The registry of composer actions: buttons beside the text field. A page adds its own by `composerActions`. */

import type { TemplateResult } from "lit";
import type { Strings } from "../i18n/strings.ts";
import type { ChatContext } from "../ui/context.ts";
import { iconButton } from "../ui/controls.ts";
import type { ComposerAction, ComposerPort } from "../ui/extensions.ts";
import { icon } from "../ui/icons.ts";

/** What the chat brings along: nothing yet. The page's own come before these. */
const builtInActions = (_strings: Strings): readonly ComposerAction[] => [];

/** The actions that are available. */
export function renderActions(
  { composerActions, strings }: ChatContext,
  composer: ComposerPort,
): readonly TemplateResult[] {
  return [...composerActions, ...builtInActions(strings)]
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
