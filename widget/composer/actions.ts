/** The registry of composer actions: buttons beside the text field. Dictation or a menu of models is one row each. */

import { nothing, type TemplateResult } from "lit";
import { iconButton } from "../ui/buttons.ts";
import type { ChatContext, ComposerAction, ComposerPort } from "../ui/chat-part.ts";
import { icon, icons } from "../ui/icons.ts";

/** The composer, as the built-in actions get it. */
export interface BuiltInPort extends ComposerPort {
  /** Media types that may be attached; absent until the server has named them. */
  readonly mediaTypes: readonly string[] | undefined;
  pickFiles(): void;
}

/** Has its place at the start of the text, in line with it. */
export function renderAttach(composer: BuiltInPort, { strings }: ChatContext): TemplateResult | typeof nothing {
  if (!canAttach(composer)) return nothing;
  return iconButton({
    part: "attach",
    label: strings.attach,
    icon: icons.plus,
    onClick: () => composer.pickFiles(),
    disabled: !composer.mediaTypes,
    className: "icon-button round attach",
  });
}

/** Its place is kept until the server has answered: the text must not move under the cursor. */
export function canAttach({ mediaTypes }: BuiltInPort): boolean {
  return mediaTypes?.length !== 0;
}

/** The page's own actions that are available. */
export function renderActions(actions: readonly ComposerAction[], composer: ComposerPort): readonly TemplateResult[] {
  return actions
    .filter((action) => isAvailable(action, composer))
    .map((action) =>
      iconButton({
        part: action.name,
        label: action.label,
        icon: icon(action.icon),
        onClick: () => void run(action, composer),
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
