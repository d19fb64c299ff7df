/**
 * Texts of the button for when its panel's file is gone. In a new build of the server `/widget.js` finds this file
 * under the same name. Browsers cache an older one as long, which does no harm.
 */

/** By language, as JSON. Inserted by the build. */
declare const PARLEY_RELOAD: string;

export const texts: Readonly<Record<string, string>> = JSON.parse(PARLEY_RELOAD);
