/** English texts of the form that asks for a key. */

export const keyFormTexts = {
  keyTitle: "Enter your key",
  keyWhy: (name: string, kept: boolean) =>
    `${name} asks for an access key. ${kept ? "It is kept in this browser only." : "This browser does not let it be kept, so you will be asked again on your next visit."}`,
  keyLabel: "Access key",
  keySubmit: "Continue",
  keyChecking: "Checking…",
  keyRefused: "That key was not accepted. Check it and enter it again.",
  keyForbidden: "That key may not be used on this page. Enter another one.",
  keyWaiting: "Your message will be sent as soon as the key is accepted.",
};
