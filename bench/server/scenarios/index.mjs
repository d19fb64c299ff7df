import { answers } from "./answers.mjs";
import { attachments } from "./attachments.mjs";
import { capacity } from "./capacity.mjs";
import { disconnect } from "./disconnect.mjs";
import { files } from "./files.mjs";
import { idle, memory } from "./memory.mjs";
import { first, paced50, paced500 } from "./paced.mjs";
import { saturation } from "./saturation.mjs";
import { startup } from "./startup.mjs";

/** In the order in which they are measured and printed. */
export const SCENARIOS = [
  saturation,
  first,
  paced50,
  paced500,
  capacity,
  answers,
  idle,
  memory,
  attachments,
  disconnect,
  files,
  startup,
];
