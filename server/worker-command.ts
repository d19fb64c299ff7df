/** The command's argument that makes a worker of it. */
export const WORKER_COMMAND = "serve-as-worker";
