/** Imported by every file that says one of these texts, so that it is there before the file draws anything. */

import { partTexts } from "./part-texts.ts";
import { en } from "./strings.ts";

Object.assign(en, partTexts);
