/** Counted things: every language has its own forms for one, two, few and many. */

type Forms = Partial<Record<Intl.LDMLPluralRule, string>> & { readonly other: string };

/** A function that picks the form for a number, and puts the number in the place of `#`. */
export function pluralsOf(lang: string): (count: number, forms: Forms) => string {
  const rules = new Intl.PluralRules(lang);
  return (count, forms) => (forms[rules.select(count)] ?? forms.other).replace("#", count.toLocaleString(lang));
}
