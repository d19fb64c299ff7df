/**
 * What this script lends to its chunks: a second copy would be loaded and run for nothing, and would not know
 * the language that is in use. The build puts these in place of a chunk's imports:
 * `build/lent-modules.mjs` says which module each is.
 */

import { css, html, nothing } from "lit";
import { guard } from "lit/directives/guard.js";
import { Announcer, spokenLines } from "./announcer.ts";
import { checkChoice, reportAttribute } from "./attribute-checks.ts";
import { recall, remember } from "./storage.ts";
import { strings } from "./strings.ts";
import { iconButton } from "./views/header.ts";
import { alert, check, close, copy, edit, icon, key, spark } from "./views/icons.ts";
import { toolStatus } from "./views/tool-status.ts";

export const lent = {
  lit: { css, html, nothing },
  guard: { guard },
  announcer: { Announcer, spokenLines },
  checks: { checkChoice, reportAttribute },
  storage: { recall, remember },
  strings: {
    get strings() {
      return strings;
    },
  },
  header: { iconButton },
  icons: { alert, check, close, copy, edit, icon, key, spark },
  toolStatus: { toolStatus },
};
