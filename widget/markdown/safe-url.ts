/** A destination that may become a link: what to write into `href`, and the host (or address) to show for it. */
export interface SafeLink {
  readonly href: string;
  /** Empty for a link that is relative to the page and stays on its origin. */
  readonly host: string;
}

/** An image that may be shown, at once when its bytes are in the URL (`host` is empty), else after a click. */
export interface SafeImage {
  readonly src: string;
  readonly host: string;
}

const LINK_SCHEMES = new Set(["http:", "https:", "mailto:", "tel:"]);
const RASTER_DATA = /^data:image\/(?:png|jpeg|gif|webp);base64,[a-z0-9+/]+={0,2}$/i;

/** Characters that a browser or a reader may skip: controls, zero-width and bidi marks, white space. */
const INVISIBLE = /[\p{Cc}\p{Cf}\p{Z}]/gu;

const SCHEME_OR_HOST = /^(?:[a-z][a-z\d+.-]*:|\/\/)/i;

/** Against the page's own base: with a base of another scheme, `https:host` would be parsed differently. */
function parse(destination: string): URL | undefined {
  return URL.canParse(destination, document.baseURI) ? new URL(destination, document.baseURI) : undefined;
}

function percentEncode(destination: string): string | undefined {
  try {
    return encodeURI(destination.replace(/\p{Cc}/gu, "").trim()).replace(/%25/g, "%");
  } catch {
    // A lone surrogate has no encoding, so there is nothing that could be requested.
    return undefined;
  }
}

/** Judges a decoded link destination: http, https, mailto, tel and relative ones pass, everything else is undefined. */
export function safeLink(destination: string): SafeLink | undefined {
  const href = percentEncode(destination);
  const judged = parse(destination.replace(INVISIBLE, ""));
  const url = href === undefined ? undefined : parse(href);
  if (href === undefined || judged === undefined || url === undefined) return undefined;
  // Both readings must pass, so that no difference between our reading and a browser's opens a door.
  if (!LINK_SCHEMES.has(judged.protocol) || !LINK_SCHEMES.has(url.protocol)) return undefined;
  // A `<base>` of the page may lead relative destinations to another site.
  const isRelative = url.origin === location.origin && !SCHEME_OR_HOST.test(href);
  if (isRelative) return { href, host: "" };
  return { href: url.href, host: url.host || decodedPath(url) };
}

function decodedPath(url: URL): string {
  try {
    return decodeURIComponent(url.pathname);
  } catch {
    // Malformed percent-encoding: shows the raw path.
    return url.pathname;
  }
}

/** Judges a decoded image source: raster `data:` URLs and absolute http(s) ones pass, everything else is undefined. */
export function safeImage(source: string): SafeImage | undefined {
  const compact = source.replace(INVISIBLE, "");
  if (RASTER_DATA.test(compact)) return { src: compact, host: "" };
  const link = safeLink(source);
  // A relative image would be a request to the page's own server, without a click.
  if (!link?.host || !/^https?:/.test(link.href)) return undefined;
  return { src: link.href, host: link.host };
}
