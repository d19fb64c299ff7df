/**
 * What this script lends to its chunks, by module: a second copy would be loaded and run for nothing, and would not know
 * the language that is in use. The build puts these in place of a chunk's imports.
 */

import { css, html, nothing } from "lit";
import { guard } from "lit/directives/guard.js";
import { strings } from "./strings.ts";
import { iconButton } from "./views/header.ts";
import * as icons from "./views/icons.ts";
import { toolStatus } from "./views/tool-status.ts";

export const lent = {
  lit: { css, html, nothing },
  "lit/directives/guard.js": { guard },
  "widget/strings.ts": {
    get strings() {
      return strings;
    },
  },
  "widget/views/header.ts": { iconButton },
  "widget/views/icons.ts": icons,
  "widget/views/tool-status.ts": { toolStatus },
};
