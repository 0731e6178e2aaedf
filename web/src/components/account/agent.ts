const browsers: [RegExp, string][] = [
  [/\bEdgA?\//, "Edge"],
  [/\b(?:OPR|Opera)\//, "Opera"],
  [/\bFirefox\/|\bFxiOS\//, "Firefox"],
  [/\bHeadlessChrome\//, "Headless Chrome"],
  [/\b(?:Chrome|CriOS)\//, "Chrome"],
  [/\bVersion\/.*\bSafari\//, "Safari"],
];

const systems: [RegExp, string][] = [
  [/\biPhone\b/, "iPhone"],
  [/\biPad\b/, "iPad"],
  [/\bAndroid\b/, "Android"],
  [/\bWindows\b/, "Windows"],
  [/\bMac OS X\b/, "macOS"],
  [/\bCrOS\b/, "ChromeOS"],
  [/\bLinux\b/, "Linux"],
];

const first = (table: [RegExp, string][], text: string) => table.find(([pattern]) => pattern.test(text))?.[1];

/**
 * Returns a User-Agent header as readable text, such as "Firefox, Linux". For an unknown browser, it returns the first
 * word, such as "curl/8.5.0".
 */
export function agentName(header: string): string {
  const browser = first(browsers, header);
  const system = first(systems, header);
  if (browser) return system ? `${browser}, ${system}` : browser;
  return header.split(/\s/)[0] ?? "";
}
