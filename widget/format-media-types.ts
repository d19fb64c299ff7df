import { isMediaType, MEDIA_TYPES } from "../server/protocol/attachments.ts";
import { strings } from "./strings.ts";

/** "JPEG, PNG, and PDF". A type that this version does not know is named as it is. */
export function formatMediaTypes(types: readonly string[]): string {
  const labels = types.map((type) => (isMediaType(type) ? MEDIA_TYPES[type].label : type));
  return new Intl.ListFormat(strings.lang).format(labels);
}
