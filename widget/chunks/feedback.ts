/** Thumbs on answers, and why. A chunk: it is loaded with the first answer, where the page asks for feedback. */

export { feedbackStyles as styles } from "../styles/feedback.styles.ts";
export { feedbackTexts as texts } from "../texts/feedback.ts";
export { feedbackView } from "../views/feedback.ts";
