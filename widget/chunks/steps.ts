/** Thinking and tool calls. A chunk: it is loaded with the first answer that has them. */

export { stepStyles as styles } from "../styles/steps.styles.ts";
export { stepTexts as texts } from "../texts/steps.ts";
export { stepsView } from "../views/steps.ts";
