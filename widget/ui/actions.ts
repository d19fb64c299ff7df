/** Rows of action buttons, and code that several actions share. */

import type { TemplateResult } from "lit";
import { type Clipboard, clipboard } from "../clipboard/copying.ts";
import type { ChatContext } from "./context.ts";
import { iconButton } from "./controls.ts";
import type { Action } from "./extensions.ts";
import { icon } from "./icons.ts";

/** Buttons for the actions that are available. */
export function renderActions<Port>(
  actions: readonly Action<Port, string | TemplateResult>[],
  port: Port,
  className?: string,
): readonly TemplateResult[] {
  return actions
    .filter((action) => attempt(action, () => action.isAvailable?.(port) ?? true))
    .map((action) =>
      iconButton(
        action.name,
        action.label,
        typeof action.icon === "string" ? icon(action.icon) : action.icon,
        (event) => void run(action, port, event),
        { className, pressed: action.pressed && (attempt(action, () => action.pressed?.(port)) ?? false) },
      ),
    );
}

type Named = Pick<Action<never>, "name">;

function attempt<Result>(action: Named, read: () => Result): Result | undefined {
  try {
    return read();
  } catch (error) {
    warn(action, error);
    return undefined;
  }
}

async function run<Port>(action: Action<Port, unknown>, port: Port, event: MouseEvent): Promise<void> {
  try {
    await action.run(port, event);
  } catch (error) {
    warn(action, error);
  }
}

/** Copies for the pressed button, which shows the outcome for a moment. */
export async function copyOn(
  { currentTarget }: Event,
  copy: (clipboard: Clipboard, button: HTMLElement) => Promise<boolean>,
  { strings, actions }: ChatContext,
): Promise<void> {
  const button = currentTarget as HTMLElement;
  // The label changes for a moment: in a button with a text only its span may, because Lit manages the rest.
  const label = button.querySelector("span") ?? button;
  const loaded = await clipboard.load().catch(() => undefined);
  const isCopied = await loaded?.copyFrom(label, copy(loaded, button), strings);
  if (!isCopied) actions.alert(strings.copyFailed);
}

function warn({ name }: Named, error: unknown): void {
  console.warn(`<agent-chat> the action "${name}" failed:`, error);
}
