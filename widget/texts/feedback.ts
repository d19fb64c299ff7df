/** English texts about what a person thinks of an answer. */

export const feedbackTexts = {
  rateUp: "Good answer",
  rateDown: "Bad answer",
  feedbackWhy: "What was wrong? (optional)",
  reasonIncorrect: "Not correct",
  reasonIncomplete: "Incomplete",
  reasonOffTopic: "Not what I asked for",
  reasonHarmful: "Harmful",
  feedbackComment: "In your own words",
  feedbackSend: "Send",
  feedbackClose: "Close",
  feedbackThanks: "Thank you.",
};
