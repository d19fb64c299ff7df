/** Minified by the build as Lit's tag of this name is. */
const css = String.raw;

/** A table of more columns is left to the browser. */
export const mostColumns = 40;

/** The custom property with the width of a column. */
export const columnWidth = (index: number) => `--_column-${index}`;

const widths = Array.from(
  { length: mostColumns },
  (_, index) => `tr:first-child > :nth-child(${index + 1}) { inline-size: var(${columnWidth(index)}) }`,
).map((rule) => `@media screen { [data-ui-columns] > table > * > ${rule} }`);

/**
 * Looks of a long table on a screen: its head and each of its bodies are tables of their own, which a browser lays out alone,
 * and copies with tabs between cells. On paper it is a table as any, whose head is on each sheet.
 */
const rules = css`
  @media screen {
    .markdown [data-ui-columns] {
      container-type: inline-size;
    }

    .markdown [data-ui-columns] > table {
      display: block;
      min-inline-size: max(100%, var(--_narrowest));
    }

    .markdown [data-ui-columns] > table > * {
      border-collapse: separate;
      border-spacing: 0;
      contain: layout paint style;
      display: table;
      inline-size: 100%;
      table-layout: fixed;
    }

    .markdown [data-ui-columns] > table td {
      border-block-start: 1px solid var(--_border);
    }

    .markdown .probe {
      block-size: 0;
      contain: strict;
      inline-size: 0;
      position: absolute;
      visibility: hidden;
    }

    .markdown .probe table {
      inline-size: min-content;
      min-inline-size: 0;
    }

    .markdown .probe .widest {
      inline-size: max-content;
    }
  }
`;

/** For the root that holds the table. */
export const longTableSheet = new CSSStyleSheet();
longTableSheet.replaceSync(rules + widths.join(""));
