import type { ReactiveController, TemplateResult } from "lit";
import type { ChatPart } from "../chat-part.ts";
import { iconButton } from "../controls.ts";
import { icons } from "../icons.ts";

/** How long a button says that it has copied. */
const COPIED_FOR_MS = 2_000;

/** The buttons of a part that copy, and say so for a moment. */
export class Copier implements ReactiveController {
  readonly #host: ChatPart;
  /** Name of the button that has just copied. */
  #copied: string | undefined;
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(host: ChatPart) {
    this.#host = host;
    host.addController(this);
  }

  hostDisconnected(): void {
    this.#show(undefined);
  }

  /** `copy` gets the button, and resolves to whether copying was possible. */
  renderButton(name: string, label: string, copy: (button: HTMLElement) => Promise<boolean>): TemplateResult {
    const { strings, actions } = this.#host.context;
    const isCopied = this.#copied === name;
    const onClick = async ({ currentTarget }: MouseEvent) => {
      if (await copy(currentTarget as HTMLElement)) this.#show(name);
      else actions.alert(strings.copyFailed);
    };
    return iconButton("copy", isCopied ? strings.copied : label, isCopied ? icons.check : icons.copy, onClick);
  }

  #show(name: string | undefined): void {
    clearTimeout(this.#timer);
    this.#copied = name;
    if (name !== undefined) this.#timer = setTimeout(() => this.#show(undefined), COPIED_FOR_MS);
    this.#host.requestUpdate();
  }
}
