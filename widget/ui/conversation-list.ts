/** The list of the conversations kept in the browser. Loaded only if there are any. */

import { html, nothing, type PropertyValues, type TemplateResult } from "lit";
import { repeat } from "lit/directives/repeat.js";
import "../i18n/add-part-texts.ts";
import type { AllConversations } from "../conversations/all-conversations.ts";
import { branchOf } from "../conversations/conversation.ts";
import type { Library } from "../conversations/library.ts";
import { textOf } from "../conversations/messages.ts";
import type { Summary } from "../conversations/row.ts";
import { UNREADABLE } from "../conversations/row.ts";
import { daysSince } from "../i18n/format.ts";
import { lazy } from "../loading/lazy.ts";
import styles from "../styles/conversation-list.css";
import { partSheets } from "../styles/part-sheets.ts";
import { ChatPart } from "./chat-part.ts";
import { hasTouchKeyboard, iconButton, smallButton } from "./controls.ts";
import { icon, icons } from "./icons.ts";
import { isTaken, useKey } from "./keys.ts";
import { beginning } from "./plain-text.ts";

/** Number of conversations from which on they can be searched. */
const SEARCH_FROM = 10;

const UNDO_FOR_MS = 10_000;

/** Pause in typing before texts are searched: longer than between the letters of a word. */
const SEARCH_AFTER_MS = 200;

/** Maximum number of characters cached from the texts read for a search. */
const MAX_TEXTS = 20_000_000;

/** Characters of a text shown before a match, and after it. */
const PASSAGE = [24, 120] as const;

const more = icon("M6 11.9h.1m5.8 0h.1m5.8 0h.1");

const transcripts = lazy(() => import("./export.ts"), "exportTranscript");

/** Missing in TypeScript's DOM library. */
interface CloseWatcher extends EventTarget {
  destroy(): void;
}
declare global {
  var CloseWatcher: (new () => CloseWatcher) | undefined;
}

/** Rows of one day, or of an earlier time. */
interface Group {
  readonly title: string;
  readonly rows: readonly Summary[];
}

export class ConversationListElement extends ChatPart {
  static override readonly sheets = partSheets(styles);
  static override properties = {
    library: { attribute: false },
    shown: { attribute: false },
    user: { attribute: false },
    isOpen: { attribute: false },
    rows: { state: true },
    query: { state: true },
    found: { state: true },
    unfolded: { state: true },
    renamed: { state: true },
    deleted: { state: true },
    isForgetting: { state: true },
    failure: { state: true },
    isSearching: { state: true },
    isReading: { state: true },
  };
  library!: Library;
  /** Id of the conversation that is shown. */
  shown: string | undefined;
  user = "";
  /** Whether the list is open over the chat. */
  isOpen = false;
  private rows: readonly Summary[] = [];
  private query = "";
  /** The first match in each conversation, by its id: the text before it, the match, and the text after. */
  private found: ReadonlyMap<string, readonly string[]> = new Map();
  /** Id of the row whose buttons are shown. */
  private unfolded: string | undefined;
  /** Id of the row that is being renamed. */
  private renamed: string | undefined;
  /** Restores the conversation deleted last, and focuses it. */
  private deleted: (() => Promise<void>) | undefined;
  /** Whether the search field has the focus: it must not disappear while somebody types. */
  private isSearching = false;
  /** Whether the search is still running: until it ends, an empty result means nothing. */
  private isReading = false;
  /** Whether the question is shown that asks before all are deleted. */
  private isForgetting = false;
  /** Why the last action failed, in words; empty if it did not. */
  private failure = "";
  #all: AllConversations | undefined;
  #unlisten = () => {};
  #undoTimer: ReturnType<typeof setTimeout> | undefined;
  #searchTimer: ReturnType<typeof setTimeout> | undefined;
  /** The text of each conversation, as read for the current search. */
  readonly #texts = new Map<string, { readonly updatedAt: number; readonly text: string }>();
  /** Ids of the rows that were shown before the search of texts began. */
  #before: ReadonlySet<string> = new Set();
  /** The current reading of the list, and the next one if it is already waiting. */
  #loading = Promise.resolve();
  #waiting: Promise<void> | undefined;
  readonly #refresh = () => void this.#load();
  #listening = new AbortController();
  /** Closes the list on a phone's back gesture. */
  #backWatcher: CloseWatcher | undefined;

  override connectedCallback(): void {
    super.connectedCallback();
    this.#listening = new AbortController();
    const { signal } = this.#listening;
    // From this width on, the list of a page is a column.
    matchMedia("(width >= 900px)").addEventListener("change", this.#close, { signal });
    // An on-screen keyboard that opens may cover the row that is being renamed.
    const reveal = () => this.querySelector(".list-name")?.scrollIntoView({ block: "nearest" });
    visualViewport?.addEventListener("resize", reveal, { signal });
    if (this.hasUpdated) void this.#load();
  }

  override disconnectedCallback(): void {
    super.disconnectedCallback();
    this.#listening.abort();
    this.#backWatcher?.destroy();
    this.#unlisten();
    this.#all = undefined;
    clearTimeout(this.#undoTimer);
    clearTimeout(this.#searchTimer);
    this.isReading = false;
    this.#texts.clear();
    this.deleted = undefined;
    this.context.actions.listed(0, 0);
  }

  protected override willUpdate(changed: PropertyValues): void {
    if (changed.has("library") || changed.has("user")) this.rows = [];
    // `context` as well, because the agent's name arrives later.
    if (changed.has("library") || changed.has("user") || changed.has("context")) void this.#load();
    if (changed.has("isOpen") && !this.isOpen) {
      this.#search("");
      this.unfolded = undefined;
      this.isForgetting = false;
      this.failure = "";
    }
    // A deleted conversation counts while the list offers to restore it.
    const deleted = this.deleted ? 1 : 0;
    const others = this.rows.filter(({ id }) => id !== this.#shownId).length + deleted;
    if (changed.has("rows") || changed.has("shown") || changed.has("deleted")) {
      this.context.actions.listed(this.rows.length + deleted, others);
    }
  }

  protected override updated(changed: PropertyValues): void {
    if (changed.has("isOpen")) this.#watchBack();
    if (changed.has("isOpen") && this.isOpen) this.querySelector<HTMLElement>(".list-new")?.focus();
    if (changed.get("isForgetting") !== undefined) {
      this.querySelector<HTMLElement>(this.isForgetting ? '[part="keep-all"]' : ".list-forget")?.focus();
    }
    if (changed.has("renamed")) {
      const field = this.querySelector<HTMLInputElement>(".list-name");
      // Only Chromium also focuses a field whose text is selected.
      field?.focus();
      field?.select();
    }
  }

  protected override render(): TemplateResult | typeof nothing {
    if (this.rows.length === 0 && !this.deleted) return nothing;
    const { strings } = this.context;
    return html`
      <div class="list-backdrop" ?hidden=${!this.isOpen} @click=${this.#close}></div>
      <nav
        part="conversations"
        class=${this.isOpen ? "list is-open" : "list"}
        aria-label=${strings.conversations}
        @keydown=${this.#keyDown}
      >
        <div class="list-head">
          <button type="button" class="list-new" @click=${() => this.#show(undefined)}>
            ${icons.compose}<span>${strings.newConversation}</span>
          </button>
          ${iconButton("close-list", strings.closeList, icons.close, this.#close, { className: "icon-button list-close" })}
        </div>
        ${this.rows.length >= SEARCH_FROM || this.query || this.isSearching ? this.#renderSearch() : nothing}
        <div class="list-rows">
          ${repeat(
            this.#groups(),
            // Keyed by title: a new day may appear above the one that has the focused row.
            ({ title }) => title,
            ({ title, rows }) => html`
              <p class="list-day" role="heading" aria-level=${Math.max(2, this.context.headingLevel - 1)}>${title}</p>
              <ul>
                ${repeat(
                  rows,
                  ({ id }) => id,
                  (row) => this.#renderRow(row),
                )}
              </ul>
            `,
          )}
          ${this.#matching().length === 0 && this.query ? this.#renderNothing() : nothing}
        </div>
        ${this.#renderFoot()}
      </nav>
    `;
  }

  readonly #close = (): void => {
    if (this.isOpen) this.context.actions.toggleList();
  };

  #watchBack(): void {
    this.#backWatcher?.destroy();
    this.#backWatcher =
      this.isOpen && hasTouchKeyboard() && globalThis.CloseWatcher ? new globalThis.CloseWatcher() : undefined;
    this.#backWatcher?.addEventListener("close", this.#close);
  }

  /** Not `shown`, because rows may arrive before the element is redrawn with the current id. */
  get #shownId(): string | undefined {
    return this.library.shownId;
  }

  #renderSearch(): TemplateResult {
    const { strings } = this.context;
    const setSearching = ({ type }: Event) => {
      this.isSearching = type === "focus";
    };
    return html`<input
      class="list-search field"
      type="search"
      autocomplete="off"
      enterkeyhint="search"
      aria-label=${strings.searchConversations}
      placeholder=${strings.searchConversations}
      .value=${this.query}
      @focus=${setSearching}
      @blur=${setSearching}
      @input=${({ target }: Event) => this.#search((target as HTMLInputElement).value)}
    />`;
  }

  #renderNothing(): TemplateResult {
    const { strings } = this.context;
    const endSearch = () => {
      this.#search("");
      this.querySelector<HTMLElement>(".list-search")?.focus();
    };
    return html`<div class="list-note">
      <p>${strings.nothingFound}</p>
      <p>${strings.searchedAll}</p>
      ${smallButton("end-search", strings.endSearch, endSearch)}
    </div>`;
  }

  #renderRow(row: Summary): TemplateResult {
    const { strings } = this.context;
    const { id } = row;
    const title = this.#titleOf(row);
    const [before, hit, after] = this.found.get(id) ?? [];
    const time = new Intl.DateTimeFormat(strings.lang, { dateStyle: "long", timeStyle: "short" }).format(row.updatedAt);
    const isShown = id === this.#shownId;
    const isUnfolded = id === this.unfolded;
    if (id === this.renamed) return this.#renderName(row);
    return html`
      <li class=${isUnfolded ? "is-unfolded" : ""}>
        <button
          type="button"
          part="conversation"
          class="list-row"
          aria-current=${isShown ? "true" : nothing}
          title=${`${title}\n${time}`}
          data-id=${id}
          @click=${() => this.#show(id)}
        >
          <span>
            <bdi class="list-title">${title}</bdi>
            ${
              // A match that the title shows is not repeated.
              hit && !title.toLowerCase().includes(hit.toLowerCase())
                ? html`<small dir="auto">${before}<mark>${hit}</mark>${after}</small>`
                : nothing
            }
          </span>
          ${isShown ? nothing : this.#renderMarks(row)}
        </button>
        <button
          type="button"
          class="icon-button list-more"
          aria-label=${strings.conversationOptions(title)}
          aria-expanded=${isUnfolded}
          @click=${() => {
            this.unfolded = isUnfolded ? undefined : id;
          }}
        >
          ${more}
        </button>
        ${
          isUnfolded
            ? html`<div class="list-options">
                ${smallButton("rename", strings.rename, () => this.#rename(id))}
                ${smallButton("export", strings.exportConversation, () => void this.#try(() => this.#export(row)))}
                ${smallButton("delete", strings.deleteConversation, () => void this.#delete(row))}
              </div>`
            : nothing
        }
      </li>
    `;
  }

  /**
   * Marks a conversation with a message still to be sent, and one with an answer that is streaming on this page or was
   * not read to its end.
   */
  #renderMarks({ id, isRunning, isUnread, isQueued }: Summary): TemplateResult {
    const { strings } = this.context;
    const isComing = this.library.sessions.some(({ conversation, busy }) => conversation.id === id && busy);
    const answer = isComing ? strings.answering : isRunning || isUnread ? strings.unreadAnswer : undefined;
    return html`
      ${isQueued ? html`<b role="img" aria-label=${strings.queued}>${icons.send}</b>` : nothing}
      ${answer === undefined ? nothing : html`<i class=${isComing ? "is-coming" : ""} role="img" aria-label=${answer}></i>`}
    `;
  }

  /** A row that is being renamed: a field with its name. */
  #renderName(row: Summary): TemplateResult {
    const { strings } = this.context;
    const end = (event: Event, isKept: boolean) => {
      if (this.renamed !== row.id) return;
      const name = (event.target as HTMLInputElement).value;
      this.renamed = undefined;
      this.unfolded = undefined;
      if (isKept && name !== this.#titleOf(row)) void this.#try(async () => this.#all?.rename(row.id, name));
      if (event.type === "keydown") void this.updateComplete.then(() => this.#rowOf(row.id)?.focus());
    };
    return html`<li>
      <input
        class="list-name field"
        dir="auto"
        enterkeyhint="done"
        maxlength="200"
        aria-label=${strings.rename}
        .value=${this.#titleOf(row)}
        @blur=${(event: Event) => end(event, true)}
        @keydown=${(event: KeyboardEvent) => {
          if (isTaken(event) || !/^(Enter|Escape)$/.test(event.key)) return;
          event.preventDefault();
          end(event, event.key === "Enter");
        }}
      />
    </li>`;
  }

  #renderFoot(): TemplateResult {
    const { strings } = this.context;
    const { dropped, kept } = this.#all ?? { dropped: 0, kept: 0 };
    const forget = (isForgetting: boolean) => () => {
      this.isForgetting = isForgetting;
    };
    return html`
      <div class="list-foot">
        ${
          this.deleted
            ? html`<p role="status">${strings.deleted}</p>
                ${smallButton("undo", strings.undo, () => void this.#undo())}`
            : nothing
        }
        ${this.failure ? html`<p role="alert">${this.failure}</p>` : nothing}
        ${dropped > 0 ? html`<p>${strings.conversationsDropped(dropped)}</p>` : nothing}
        ${
          this.isForgetting
            ? html`<p role="alert">${strings.forgetAllSure(kept)}</p>
                ${smallButton("keep-all", strings.keepConversations, forget(false))}
                ${smallButton("forget-all", strings.deleteConversation, (event) => void this.#forgetAll(event as MouseEvent))}`
            : this.rows.length > 0
              ? html`<p>${strings.keptHere}</p>
                  <button type="button" class="list-forget" @click=${forget(true)}>${strings.forgetAll}</button>`
              : nothing
        }
      </div>
    `;
  }

  /** Reads the list. If asked again meanwhile, it is read once more afterwards. */
  #load(): Promise<void> {
    this.#waiting ??= this.#loading.then(() => {
      this.#waiting = undefined;
      return this.#read();
    });
    this.#loading = this.#waiting;
    return this.#loading;
  }

  async #read(): Promise<void> {
    const { library, user } = this;
    const isCurrent = () => this.isConnected && library === this.library && user === this.user;
    const all = await library.all();
    if (!all || !isCurrent()) return;
    if (all !== this.#all) {
      this.#unlisten();
      this.#all = all;
      library.listeners.add(this.#refresh);
      this.#unlisten = () => library.listeners.delete(this.#refresh);
    }
    const rows = await all.list().catch(() => this.rows);
    if (isCurrent()) this.rows = rows;
  }

  #titleOf({ title }: Summary): string {
    return title || this.context.strings.newConversation;
  }

  #rowOf(id: string): HTMLElement | undefined {
    return this.#rowElements().find((row) => row.dataset.id === id);
  }

  #rowElements(): HTMLElement[] {
    return [...this.querySelectorAll<HTMLElement>(".list-row")];
  }

  #matching(): readonly Summary[] {
    const query = this.query.trim().toLowerCase();
    const hits = this.rows.filter((row) => this.#titleOf(row).toLowerCase().includes(query) || this.found.has(row.id));
    return hits.length === 0 && this.isReading ? this.rows.filter(({ id }) => this.#before.has(id)) : hits;
  }

  #groups(): readonly Group[] {
    const { lang } = this.context.strings;
    const relative = new Intl.RelativeTimeFormat(lang, { numeric: "auto" });
    const month = new Intl.DateTimeFormat(lang, { month: "long", year: "numeric" });
    const titleOf = (time: number): string => {
      const days = daysSince(time);
      if (days < 2) return relative.format(-days, "day");
      // Weeks begin on Mondays.
      const weekday = (new Date().getDay() + 6) % 7;
      if (days <= weekday + 7) return relative.format(days <= weekday ? 0 : -1, "week");
      return month.format(time);
    };
    const groups: { title: string; rows: Summary[] }[] = [];
    for (const row of this.#matching()) {
      const title = titleOf(row.updatedAt);
      const group = groups.at(-1);
      if (group?.title === title) group.rows.push(row);
      else groups.push({ title, rows: [row] });
    }
    return groups;
  }

  #show(id: string | undefined): void {
    // Choosing the shown conversation only closes the list.
    const row = this.rows.find((it) => it.id === id);
    if (row && id === this.#shownId) {
      this.#close();
      return;
    }
    void this.context.actions.openConversation(id);
    if (row) this.context.actions.announce(this.#titleOf(row));
  }

  #rename(id: string): void {
    this.failure = "";
    this.renamed = id;
  }

  /** Does the work. If it fails, shows why and reads the list again, which still has what could not be changed. */
  async #try<Result>(work: () => Promise<Result>): Promise<Result | undefined> {
    this.failure = "";
    try {
      return await work();
    } catch (error) {
      const { strings } = this.context;
      this.failure = (error as Error).message === UNREADABLE ? strings.notShown : strings.storageFailed;
      await this.#load();
      return undefined;
    }
  }

  async #export(row: Summary): Promise<void> {
    const { strings, actions } = this.context;
    const stored = await this.#all?.load(row.id);
    if (stored === UNREADABLE) throw new Error(UNREADABLE);
    if (!stored) {
      actions.alert(strings.nothingFound);
      return this.#load();
    }
    const { exportTranscript } = await transcripts.load();
    const messages = branchOf(stored.tree, stored.head);
    const text = await exportTranscript("markdown", messages, this.context);
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([text], { type: "text/markdown" }));
    link.download = `${this.#titleOf(row).replace(/[\\/:*?"<>|\s]+/g, " ")}.md`;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
    this.unfolded = undefined;
  }

  async #delete({ id }: Summary): Promise<void> {
    const rows = this.#rowElements();
    const next = rows[rows.findIndex((row) => row.dataset.id === id) + 1] ?? rows.at(-2);
    const nextId = next?.dataset.id;
    this.unfolded = undefined;
    clearTimeout(this.#undoTimer);
    const { strings, actions } = this.context;
    const bringBack = await this.#try(async () => this.#all?.remove(id));
    if (!bringBack) {
      await this.updateComplete;
      return this.#rowOf(id)?.focus();
    }
    this.deleted = async () => {
      await bringBack();
      await this.#load();
      await this.updateComplete;
      this.#rowOf(id)?.focus();
    };
    actions.announce(strings.deleted, strings.undo);
    this.#undoTimer = setTimeout(() => {
      this.deleted = undefined;
    }, UNDO_FOR_MS);
    await this.#load();
    await this.updateComplete;
    (nextId ? this.#rowOf(nextId) : this.querySelector<HTMLElement>('[part="undo"]'))?.focus();
  }

  async #undo(): Promise<void> {
    const { deleted } = this;
    this.deleted = undefined;
    await this.#try(async () => deleted?.());
    if (this.failure) this.deleted = deleted;
  }

  async #forgetAll({ detail }: MouseEvent): Promise<void> {
    // Ignores the second click of a double click, which was meant for the nearby button that opens the question.
    if (detail > 1) return;
    this.isForgetting = false;
    this.deleted = undefined;
    await this.#try(async () => this.#all?.clear());
    if (!this.failure) this.#close();
    await this.#load();
  }

  /** Searches titles at once, and then the texts, which have to be read first. */
  #search(query: string): void {
    clearTimeout(this.#searchTimer);
    this.#before = new Set(this.#matching().map(({ id }) => id));
    this.query = query;
    this.found = new Map();
    this.isReading = query.trim().length > 1;
    if (this.isReading) this.#searchTimer = setTimeout(() => void this.#searchTexts(query), SEARCH_AFTER_MS);
    else if (query === "") this.#texts.clear();
  }

  async #searchTexts(query: string): Promise<void> {
    // On-screen keyboards add a space after a word.
    const wanted = new RegExp(query.trim().replace(/[\\^$.*+?()[\]{}|]/g, "\\$&"), "iu");
    for (const row of this.rows) {
      const text = await this.#textIn(row);
      if (query !== this.query) return;
      const passage = passageOf(text, wanted);
      if (passage) this.found = new Map(this.found).set(row.id, passage);
    }
    this.isReading = false;
    const { strings, actions } = this.context;
    const { length } = this.#matching();
    actions.announce(length === 0 ? strings.nothingFound : strings.conversationsFound(length));
  }

  /** Read once per search, unless the conversation has changed, as the shown one may at any time. */
  async #textIn({ id, updatedAt }: Summary): Promise<string> {
    const known = this.#texts.get(id);
    if (known?.updatedAt === updatedAt && id !== this.#shownId) return known.text;
    const stored = await this.#all?.load(id).catch(() => undefined);
    if (!stored || stored === UNREADABLE) return "";
    const text = branchOf(stored.tree, stored.head).map(textOf).join("\n");
    let held = text.length;
    for (const other of this.#texts.values()) held += other.text.length;
    if (held <= MAX_TEXTS && this.query) this.#texts.set(id, { updatedAt, text });
    return text;
  }

  readonly #keyDown = (event: KeyboardEvent): void => useKey(event, (pressed) => this.#commandOf(pressed));

  #commandOf({ key, target }: KeyboardEvent): (() => void) | undefined {
    if (key === "Escape") {
      if (this.isForgetting || this.unfolded !== undefined) {
        return () => {
          this.isForgetting = false;
          this.unfolded = undefined;
        };
      }
      return this.isOpen ? this.#close : undefined;
    }
    const rows = this.#rowElements();
    const at = rows.indexOf(target as HTMLElement);
    const row = this.rows.find(({ id }) => id === rows[at]?.dataset.id);
    if (key === "ArrowDown" && (target as Element).matches(".list-row, .list-search, .list-new")) {
      return () => rows[at + 1]?.focus();
    }
    if (!row) return undefined;
    if (key === "ArrowUp") return () => rows[at - 1]?.focus();
    if (key === "F2") return () => this.#rename(row.id);
    return key === "Delete" ? () => void this.#delete(row) : undefined;
  }
}

/** The text before the first match (from the start of a word), the match, and the text after. */
function passageOf(text: string, wanted: RegExp): readonly [string, string, string] | undefined {
  const { index, 0: hit = "" } = wanted.exec(text) ?? {};
  if (index === undefined) return undefined;
  const [from, to] = [Math.max(0, index - PASSAGE[0]), index + hit.length];
  const before = text.slice(from, index).replace(from > 0 ? /^\S*\s+/ : "", "");
  return [from > 0 ? `… ${before}` : before, hit, beginning(text.slice(to), PASSAGE[1])];
}
