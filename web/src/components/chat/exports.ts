import { t } from "../../i18n";
import type { Chat, Turn } from "./chat";
import { labelOf, letter } from "./models";
import { type Picks, type Step, shown } from "./tree";

/** Quotes a text as Markdown, so that its headings and lists stay inside it. */
const quoted = (text: string) =>
  text
    .split("\n")
    .map((line) => (line === "" ? ">" : `> ${line}`))
    .join("\n");

/** Writes the shown path of a chat as Markdown. */
export function toMarkdown(chat: Chat, steps: readonly Step<Turn>[], picks: Picks): string {
  const parts = [`# ${chat.title.replaceAll("\n", " ")}`];
  for (const [i, { turn }] of steps.entries()) {
    parts.push(`## ${t("Prompt")} ${i + 1}`, quoted(turn.prompt));
    for (const f of turn.attachments) parts.push(`- ${f.name} (${f.type})`);
    const numbers = [...new Set(turn.answers.map((a) => a.column))].sort((a, b) => a - b);
    for (const number of numbers) {
      const answer = shown(turn, number, picks, steps[i + 1]?.turn);
      if (!answer) continue;
      const at = chat.columns.findIndex((c) => c.number === number);
      const name = answer.model ? labelOf(answer.model) : t("Model {{letter}}", { letter: letter(Math.max(0, at)) });
      parts.push(`### ${name}`, answer.text || `*${answer.message || answer.status.toLowerCase()}*`);
    }
  }
  return `${parts.join("\n\n")}\n`;
}

/** Returns a file name from the title of a chat. */
export const fileName = (title: string, ending: string) =>
  `${
    title
      .replace(/[^\p{L}\p{N}]+/gu, "-")
      .replace(/^-+|-+$/g, "")
      .slice(0, 60) || "chat"
  }.${ending}`;
