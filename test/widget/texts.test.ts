/** The chat's texts in all its languages, including a site's own, and values in them: counts, sizes, failures. */

import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { test } from "node:test";
import { ERRORS } from "../../server/protocol/errors.ts";
import "../../widget/i18n/add-part-texts.ts";
import { formatMediaTypes } from "../../widget/composer/read-file.ts";
import { formatBytes } from "../../widget/i18n/format.ts";
import { formatDuration } from "../../widget/i18n/format-duration.ts";
import { loadLocale } from "../../widget/i18n/load-strings.ts";
import { partTexts } from "../../widget/i18n/part-texts.ts";
import { en, failureText, type Locale, stringsOf } from "../../widget/i18n/strings.ts";

const LANGUAGES = ["ar", "de", "es", "fr", "it", "ja", "pt", "zh"];

/** A text of the table, or the result of its function for sample arguments. */
function said(text: unknown): unknown {
  return typeof text === "function" ? text("Ada", "5 MB") : text;
}

for (const language of LANGUAGES) {
  test(`${language} has every text, in words of its own, with what each of them is given`, async () => {
    const locale = await loadLocale(language);
    assert.equal(locale.lang, language);
    assert.deepEqual(Object.keys(locale).sort(), Object.keys(en).sort());
    let same = 0;
    for (const [name, text] of Object.entries(en)) {
      const translated = locale[name as keyof Locale];
      assert.equal(typeof translated, typeof text, name);
      if (typeof text === "function" && /Ada/.test(String(said(text)))) {
        assert.match(String(said(translated)), /Ada/, name);
      }
      if (typeof text === "function" && /5 MB/.test(String(said(text)))) {
        assert.match(String(said(translated)), /5 MB/, name);
      }
      assert.notEqual(String(said(translated)).trim(), "", name);
      if (said(translated) === said(text)) same += 1;
    }
    // Words such as "Chat" and "Code".
    assert.ok(same <= 14, `${same} texts are the English ones`);
  });
}

test("every file of a language is loaded by its name, another language is English", async () => {
  const files = readdirSync(new URL("../../widget/i18n/locales/", import.meta.url));
  assert.deepEqual(
    files.sort(),
    LANGUAGES.map((language) => `${language}.ts`),
  );
  assert.equal((await loadLocale("pt-BR")).lang, "pt");
  for (const tag of ["zh", "ZH-CN", "zh-Hans-HK", "zh-SG"]) assert.equal((await loadLocale(tag)).lang, "zh", tag);
  for (const tag of ["en-GB", "he", "", "constructor", "ZH-Hant-TW", "zh-Hant", "zh-TW", "zh-HK"])
    assert.equal(await loadLocale(tag), en, tag);
});

test("a file that says a text of the lazy parts brings these along", () => {
  // Names of a single word may have another meaning.
  const names = Object.keys(partTexts).map((name) => (/[A-Z]/.test(name) ? name : `strings\\.${name}`));
  const words = new RegExp(`\\b(?:${names.join("|")})\\b`);
  const files = readdirSync("widget", { recursive: true, encoding: "utf8" });
  const saying = files
    // Conversations must not import texts (`test/contract/layers.test.ts`), and have a `messageOf` of their own.
    .filter((file) => file.endsWith(".ts") && !/^(i18n|conversations)\b/.test(file))
    .map((file) => [file, readFileSync(`widget/${file}`, "utf8")] as const)
    .filter(([, code]) => words.test(code.replace(/\/\*.*?\*\/|\/\/[^\n]*/gs, "")));
  assert.ok(saying.length > 10);
  for (const [file, code] of saying) assert.match(code, /import "\S*\/i18n\/add-part-texts\.ts";/, file);
});

test("a failure is said also where no lazy part can be loaded", () => {
  const eager = Object.fromEntries(Object.entries(en).filter(([name]) => !(name in partTexts)));
  for (const code of ["provider_auth", "internal", "some_new_code"] as const) {
    const failure = { code: code as "internal", retryable: true };
    assert.equal(failureText(failure, eager as unknown as typeof en), "The server could not answer.", code);
  }
});

test("Spanish says tú throughout", async () => {
  const words = Object.values(await loadLocale("es"))
    .map(said)
    .join(" ");
  assert.doesNotMatch(words, /usted|Está |escriba |No tiene conexión|adjúntel|introdúzca/);
});

test("counted things have the form that the number asks for", async () => {
  const ar = stringsOf(await loadLocale("ar"));
  const de = stringsOf(await loadLocale("de"));
  assert.deepEqual([1, 2].map(en.unread), ["1 new message", "2 new messages"]);
  assert.deepEqual([1, 2].map(de.unread), ["1 neue Nachricht", "2 neue Nachrichten"]);
  assert.deepEqual([1, 2].map(ar.unread), ["رسالة جديدة واحدة", "رسالتان جديدتان"]);
  assert.notEqual(ar.unread(3).replace(/[\d٣]/, ""), ar.unread(11).replace(/\d+|١١/, ""));
  assert.equal(de.steps(1200), "1.200 Schritte");
});

test("sizes, times and types of files are written as in the language", () => {
  assert.deepEqual(
    [512, 20 * 1024 * 1024, 1536].map((bytes) => formatBytes(bytes, "en")),
    ["512 bytes", "20 MB", "1.5 kB"],
  );
  assert.equal(formatBytes(1536, "de"), "1,5 kB");
  assert.deepEqual(
    [1200, 125_000].map((milliseconds) => formatDuration(milliseconds, "en")),
    ["1.2s", "2m 5s"],
  );
  const types = ["image/jpeg", "application/pdf", "audio/new"];
  assert.equal(formatMediaTypes(types, "en"), "JPEG, PDF, and audio/new");
  assert.equal(formatMediaTypes(types, "fr"), "JPEG, PDF et audio/new");
});

test("a site's own text may be a text or a function, whichever ours is", () => {
  const strings = stringsOf(en, {
    placeholder: "Ask us",
    send: () => "Ride!",
    stop: "Halt",
    steps: (count) => `${count} things`,
  });
  assert.equal(strings.placeholder("Acme"), "Ask us");
  assert.equal(strings.send, "Ride!");
  assert.equal(strings.stop, "Halt");
  assert.equal(strings.steps(3), "3 things");
  assert.equal(strings.copy, "Copy");
});

test("of a site's own texts, what is missing, unknown or of the wrong kind does no harm", () => {
  const own = { send: undefined, stop: null, lang: "xx", toString: "no", copied: 5, typo: "x" };
  const strings = stringsOf(en, own as unknown as Parameters<typeof stringsOf>[1]);
  assert.deepEqual({ ...strings, copied: en.copied }, { ...en });
  assert.equal(strings.copied, "5");
  assert.deepEqual({ ...stringsOf(en, null) }, { ...en });
});

test("where a function of the site's throws, our text stands in, and the console says so", (t) => {
  const warn = t.mock.method(console, "warn", () => undefined);
  const fail = () => {
    throw new Error("no such text");
  };
  const strings = stringsOf(en, { send: fail, placeholder: fail });
  assert.deepEqual([strings.send, strings.placeholder("Ada")], [en.send, en.placeholder("Ada")]);
  assert.deepEqual(
    warn.mock.calls.map(({ arguments: [text] }) => text),
    ["<agent-chat> strings.send has failed:", "<agent-chat> strings.placeholder has failed:"],
  );
});

test("two tables of texts know nothing of each other", async () => {
  const german = stringsOf(await loadLocale("de"));
  const french = stringsOf(await loadLocale("fr"), { send: "Roulez !" });
  assert.equal(german.send, "Nachricht senden");
  assert.equal(french.send, "Roulez !");
  const failure = { code: "connection_lost", retryable: true } as const;
  assert.equal(failureText(failure, german), german.connectionLost);
  assert.equal(failureText(failure, french), french.connectionLost);
});

const failed = (code: string, detail?: string, retryable = true) =>
  ({ code, retryable, detail }) as Parameters<typeof failureText>[0];

test("a failure is said in the server's own words, else in those of its code, else in general", () => {
  const text = (...failure: Parameters<typeof failed>) => failureText(failed(...failure), en);
  assert.equal(text("provider_error", "The model is not there."), "The model is not there.");
  assert.equal(text("rate_limited"), en.rateLimited);
  assert.equal(text("run_not_found"), en.connectionLost);
  assert.equal(text("provider_error"), en.serverError);
  assert.equal(text("provider_error", "", false), en.ownerNeeded);
  assert.equal(text("a_code_of_a_newer_server", ""), en.serverError);
  assert.equal(text("a_code_of_a_newer_server", "Please sign in."), "Please sign in.");
});

test("what the server says to those who write clients is nothing for people: the text of the code stands in", () => {
  const text = (code: string, detail: string) => failureText(failed(code, detail), en);
  assert.equal(text("invalid_request", "attachments[0].data is not base64"), en.messageRefused);
  assert.equal(text("request_too_large", "The request body is larger than 10 bytes."), en.requestTooLarge);
  assert.equal(text("run_expired", "Event 3 of this run is no longer kept."), en.connectionLost);
});

test("a site's own text of a failure stands before the server's sentence", () => {
  const strings = stringsOf(en, { overloaded: "All our agents are busy." });
  assert.equal(failureText(failed("overloaded", "The server is busy."), strings), "All our agents are busy.");
});

for (const language of LANGUAGES) {
  test(`in ${language} no failure is said in the server's English, whatever its code; a cause for the operator is kept`, async () => {
    const strings = stringsOf(await loadLocale(language));
    const english = Object.values(en).map(said);
    const codes = [...Object.keys(ERRORS), "connection_lost", "unreachable", "unreadable", "a_code_of_a_newer_server"];
    for (const code of codes) {
      for (const retryable of [true, false]) {
        const text = failureText(failed(code, "It did not work.", retryable), strings);
        assert.ok(!english.includes(text) && !text.includes("It did not work"), `${code}: ${text}`);
        const onLoopback = failureText(failed(code, "It did not work. (No key is set.)", retryable), strings);
        assert.equal(onLoopback, `${text} (No key is set.)`);
      }
    }
  });
}
