import i18next from "i18next";
import en from "./locales/en.json";

/**
 * English sentences are the keys, so that the code shows the text of the page. locales/en.json contains only the
 * plurals of English. A further language is one more file there, which is loaded only if it is selected.
 */
const others = import.meta.glob<{ default: Record<string, string> }>(["./locales/*.json", "!./locales/en.json"]);

const names: Record<string, string> = { en: "English", ko: "한국어", ja: "日本語" };
const stored = "berth.language";

export const languages = [
  "en",
  ...Object.keys(others).map((path) => path.slice("./locales/".length, -".json".length)),
].map((code) => ({ code, name: names[code] ?? code }));

function preferred() {
  const wanted = [localStorage.getItem(stored), ...navigator.languages].map((tag) => tag?.split("-")[0]);
  return wanted.find((code) => languages.some((l) => l.code === code)) ?? "en";
}

export async function start() {
  const lng = preferred();
  const load = others[`./locales/${lng}.json`];
  const resources = { en: { translation: en }, ...(load ? { [lng]: { translation: (await load()).default } } : {}) };
  document.documentElement.lang = lng;
  await i18next.init({
    lng,
    fallbackLng: "en",
    resources,
    keySeparator: false,
    nsSeparator: false,
    interpolation: { escapeValue: false },
  });
}

/** Texts are read when the page loads, so a change of the language reloads the page. */
export function choose(code: string) {
  localStorage.setItem(stored, code);
  location.reload();
}

export const t = (key: string, values?: Record<string, string | number>): string => i18next.t(key, values);
export const language = () => i18next.language;
