import { useAction } from "../../hooks/useAction";
import { toast } from "../../hooks/useToasts";
import { t } from "../../i18n";
import { OpenApp, type OpenInput } from "./app";

/** Opens apps in tabs of their own, and copies their addresses. */
export function useOpenApp() {
  const { run, busy } = useAction(OpenApp, true);

  /**
   * Must be called in the handler of a click or a key. Reports whether a tab shows the app. If a function is given, it
   * is called after the tab is open and returns the app.
   */
  async function open(which: OpenInput | (() => Promise<OpenInput | null>)): Promise<boolean> {
    // Browsers block a tab that is opened later, such as after a response of the server.
    const tab = window.open("", "_blank");
    if (!tab) {
      toast({ text: t("The browser blocked the new tab. Allow pop-ups for this page, and open the app again.") });
      return false;
    }
    // The app must not be able to access this page.
    tab.opener = null;
    const input = typeof which === "function" ? await which() : which;
    const done = input && (await run({ input }));
    if (!done) {
      tab.close();
      return false;
    }
    tab.location.replace(done.openApp.url);
    return true;
  }

  async function copyAddress(address: string) {
    if (!address) {
      toast({ text: t("No gateway is running, so apps cannot be opened.") });
      return;
    }
    try {
      await navigator.clipboard.writeText(address);
      toast({ text: t("The address was copied.") });
    } catch {
      // Browsers offer no clipboard to pages without HTTPS.
      toast({ text: address });
    }
  }
  return { open, copyAddress, busy };
}
