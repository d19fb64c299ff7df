/** A long answer with everything that Markdown has, for seeing how it streams and looks. */
export const MARKDOWN_SAMPLE = `# A tour of Markdown

Answers may be **bold**, *italic*, ~~struck~~ or \`inline code\`, and link to [a page](https://commonmark.org/help/).

## Lists

1. Numbered items
2. with a nested list:
   - one
   - two
     - and deeper
3. and back.

- [x] Task lists
- [ ] with an open item

## Code

\`\`\`ts
import { defineAgent, tool } from "parley-agent";

export default defineAgent({
  name: "Acme Support",
  model: "openai/gpt-5.2",
  instructions: "You are a friendly support agent.",
});
\`\`\`

\`\`\`bash
curl http://127.0.0.1:8080/api/chat \\
  -H "content-type: application/json" \\
  -d '{"message": "Hello", "stream": false}'
\`\`\`

## A table

| Transport | Direction | Good for | Example |
|:----------|:---------:|:---------|--------:|
| JSON      | one reply | scripts  | \`stream: false\` |
| SSE       | streamed  | servers, terminals | \`stream: true\` |
| WebSocket | both ways | browsers | \`/ws/chat\` |

## A formula

The length of a day is \\(\\frac{24}{\\pi} \\arccos(-\\tan\\varphi \\tan\\delta)\\) hours, where[^1]

\\[
\\delta \\approx 23.44^\\circ \\cdot \\sin\\frac{2\\pi(n - 81)}{365}
\\]

## A quote

> The chief virtue that language can have is clearness, and nothing detracts from it so much as the use of unfamiliar words.
>
> *Hippocrates, as quoted by Galen*

---

### The end

That was a heading, a rule, a quote, a table, code, a formula, a footnote and lists. Raw HTML such as <b>this</b> is shown as text, never run.

[^1]: On day *n* of the year, at the latitude \\(\\varphi\\).
`;
