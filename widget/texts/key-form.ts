/** English texts of the form that asks for a key. */

export const keyFormTexts = {
  keyTitle: "Enter your key",
  keyWhy: (name: string) => `${name} asks for an access key. It is kept in this browser only.`,
  keyLabel: "Access key",
  keySubmit: "Continue",
  keyChecking: "Checking…",
  keyRefused: "That key was not accepted. Check it and enter it again.",
  keyForbidden: "That key may not be used on this page. Enter another one.",
  keyWaiting: "Your message will be sent as soon as the key is accepted.",
};
