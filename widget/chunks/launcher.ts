/** The launcher's button and panel: what `<agent-chat-launcher>` does. Only pages that have one load it. */

export { launcherTexts as texts } from "../texts/launcher.ts";
export { LauncherPanel } from "./launcher-panel.ts";
