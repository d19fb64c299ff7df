/** Reads the `server` attribute. The result ends in a slash, so that paths can be resolved against it. */
export function parseServer(text: string): URL {
  const url = URL.canParse(text, document.baseURI) ? new URL(text, document.baseURI) : undefined;
  if (!url || !/^https?:$/.test(url.protocol)) {
    throw new TypeError(
      `<agent-chat> server must be an http or https URL such as "https://chat.example.com", not "${text}"`,
    );
  }
  url.search = "";
  url.hash = "";
  if (!url.pathname.endsWith("/")) url.pathname += "/";
  return url;
}
