/** Installs LiteLLM ahead of its tests. */

import { installLiteLlm, pythonVersion } from "../support/litellm-proxy.ts";

const version = await pythonVersion();
if (version === undefined) throw new Error("There is no python3 to install LiteLLM for.");
await installLiteLlm(version);
