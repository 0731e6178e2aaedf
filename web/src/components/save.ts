/** Downloads a text as a file. */
export function save(name: string, text: string, type = "text/plain") {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type }));
  link.download = name;
  link.click();
  // Some browsers read the file only after the click returns.
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}
