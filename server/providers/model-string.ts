/** Model strings, such as "openai/gpt-5.2". */

const OPENAI_NAME = /^(?:gpt-|chatgpt-|codex|computer-use|ft:|o\d)/;

/** Provider and name that it means. A bare name that looks like one of OpenAI's is OpenAI's; any other has the provider "". */
export function splitModel(model: string): [id: string, name: string] {
  const given = model.trim();
  const slash = given.indexOf("/");
  if (slash !== -1) return [given.slice(0, slash), given.slice(slash + 1)];
  if (given === "demo") return ["demo", "demo"];
  return [OPENAI_NAME.test(given) ? "openai" : "", given];
}
