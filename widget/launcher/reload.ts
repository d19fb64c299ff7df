/**
 * What the button says when its panel is gone. In a new build of the server `/widget.js` finds this file under the same
 * name. Browsers keep an older one as long, which harms nothing.
 */

/** By language: put here by the build. */
declare const PARLEY_RELOAD: string;

export const texts: Readonly<Record<string, string>> = JSON.parse(PARLEY_RELOAD);
