import { icon } from "./icons.ts";

/** A sheet of paper. Apart from the others, since only the chunk of files shows it. */
export const fileIcon = icon("M13.5 3.5H7.5a2 2 0 0 0-2 2v13a2 2 0 0 0 2 2h9a2 2 0 0 0 2-2v-10zm0 0v5h5");
