/** The one place that says what each provider takes; everything else is refused in words before a call. */

import { ALL_MEDIA_TYPES, type MediaType } from "../protocol/attachments.ts";
import { SetupError } from "./failures/provider-error.ts";
import type { ModelSettings } from "./provider.ts";

/** What a provider can be given. A model of it may take less: what it refuses then is a 400. */
interface Capabilities {
  readonly mediaTypes: readonly MediaType[];
  readonly settings: readonly (keyof ModelSettings)[];
}

const JPEG_PNG_WEBP = ["image/jpeg", "image/png", "image/webp"] as const;

const SAMPLING = ["reasoningEffort", "temperature", "maxOutputTokens", "extraBody"] as const;

const CAPABILITIES = {
  openai: { mediaTypes: ALL_MEDIA_TYPES, settings: [...SAMPLING, "store", "hostedTools"] },
  litellm: { mediaTypes: ALL_MEDIA_TYPES, settings: SAMPLING },
  anthropic: { mediaTypes: ALL_MEDIA_TYPES, settings: SAMPLING },
  gemini: { mediaTypes: [...JPEG_PNG_WEBP, "application/pdf"], settings: SAMPLING },
  bedrock: { mediaTypes: ALL_MEDIA_TYPES, settings: SAMPLING },
  vertex: { mediaTypes: [...JPEG_PNG_WEBP, "application/pdf"], settings: SAMPLING },
  ollama: { mediaTypes: JPEG_PNG_WEBP, settings: SAMPLING },
  compatible: { mediaTypes: ALL_MEDIA_TYPES, settings: SAMPLING },
  demo: { mediaTypes: ALL_MEDIA_TYPES, settings: [] },
} as const satisfies Record<string, Capabilities>;

/** A provider, as the first part of a model string names it. */
export type ProviderId = keyof typeof CAPABILITIES;

export function isProviderId(text: string): text is ProviderId {
  return Object.hasOwn(CAPABILITIES, text);
}

/** What may be attached to a message for a model of this provider. */
export function mediaTypesOf(id: ProviderId): readonly MediaType[] {
  return CAPABILITIES[id].mediaTypes;
}

/** Stops the start over a setting that would do nothing. @throws SetupError that names it */
export function refuseSettings(id: ProviderId, settings: ModelSettings): void {
  const taken: readonly string[] = CAPABILITIES[id].settings;
  for (const [name, value] of Object.entries(settings)) {
    if (value === undefined || taken.includes(name)) continue;
    throw new SetupError(`${name} does nothing with a model of ${id}: remove it, or use a model of ${takersOf(name)}.`);
  }
}

/**
 * What of the settings is for this one of an agent's providers: `store: false` says of those that keep nothing
 * what they do anyway, as long as there is one that it is for.
 */
export function settingsFor(id: string, settings: ModelSettings, ids: readonly string[]): ModelSettings {
  const takesStore = (name: string) =>
    isProviderId(name) && CAPABILITIES[name].settings.some((setting) => setting === "store");
  if (settings.store !== false || takesStore(id) || !ids.some(takesStore)) return settings;
  const { store: _store, ...rest } = settings;
  return rest;
}

function takersOf(setting: string): string {
  const takers = Object.entries(CAPABILITIES).filter(([, { settings }]) => settings.some((name) => name === setting));
  return takers.map(([id]) => id).join(", ");
}
