/** Downloads a text as a file. */
export function save(name: string, text: string) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type: "text/plain" }));
  link.download = name;
  link.click();
  // Some browsers read the file only after the click returns.
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}
