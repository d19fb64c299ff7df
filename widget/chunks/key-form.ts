/** The form that asks for a key. A chunk: it is loaded where a server wants a key that the browser does not have. */

export { keyFormStyles as styles } from "../styles/key-form.styles.ts";
export { keyFormTexts as texts } from "../texts/key-form.ts";
export { keyFormView } from "../views/key-form.ts";
