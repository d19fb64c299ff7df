/** What everybody may GET, with or without a key. */
export const OPEN_PATHS = ["/", "/?embed=1", "/api/info", "/health", "/health/ready", "/launcher.js", "/widget.js"];
