/** Returns a text with an apostrophe in front if a spreadsheet would take it for a formula. */
export const harmless = (text: string) => (/^[=+\-@\t\r]/.test(text) ? `'${text}` : text);
